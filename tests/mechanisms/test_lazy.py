"""Importing the mechanisms loads nothing heavy."""

import subprocess
import sys


def test_importing_loads_neither_dp_accounting_nor_scipy():
    heavy = ("dp_accounting", "scipy", "torch", "catboost", "sklearn", "numba")
    code = f"import sys, bystander.mechanisms; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_scripts_names_are_there():
    import bystander.mechanisms as m

    names = "Alibi ConfidentGnmax Guarantee Ledger MultiStage Pate RRWithPrior RandomizedResponse Release"
    assert m.__all__ == names.split()
    assert all(hasattr(m, name) for name in m.__all__)
