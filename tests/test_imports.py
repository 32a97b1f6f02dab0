import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAVY = ("numba", "matplotlib", "torch", "pandas", "polars", "ray", "scipy.stats", "catboost")


def fresh(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_importing_loads_nothing_heavy():
    assert fresh(f"import sys, bystander; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


def test_the_command_line_loads_nothing_heavy():
    assert fresh(f"import sys, bystander.cli; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


def test_importing_takes_less_than_three_tenths_of_a_second():
    """Best of five fresh interpreters, NumPy included, in seconds of the processor: neighbours on it do not count."""
    code = "import time; t = time.process_time(); import bystander; print(time.process_time() - t)"
    assert any(float(fresh(code)) < 0.3 for _ in range(5))


def test_every_name_that_is_exported_is_there():
    import bystander

    assert all(hasattr(bystander, name) for name in bystander.__all__)
    assert list(bystander.__all__) == sorted(bystander.__all__)


def test_imports_point_one_way():
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stdout
