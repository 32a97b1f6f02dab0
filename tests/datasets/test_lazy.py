import subprocess
import sys


def test_importing_data_sets_loads_numpy_alone():
    """What `bystander` itself does not load already."""
    heavy = ("pandas", "pyarrow.csv", "torch", "sklearn", "catboost", "polars", "matplotlib")
    code = f"import sys, bystander.datasets; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
