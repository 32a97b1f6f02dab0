import json
import signal
import sys

import pytest
from hypothesis import settings

from bystander.cli import main

settings.register_profile("seeded", deadline=None, derandomize=True)  # the same examples in every run
settings.load_profile("seeded")


@pytest.fixture
def cli(monkeypatch, capsys):
    """The command line itself, in this process: arguments → (status, standard output, standard error)."""

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["bystander", *map(str, args)])
        capsys.readouterr()
        before = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as left:
                main()
        finally:
            signal.signal(signal.SIGTERM, before)
        said = capsys.readouterr()
        return left.value.code, said.out, said.err

    return call


@pytest.fixture
def answer(cli):
    """The JSON that the command line writes for these arguments."""

    def call(*args):
        status, out, err = cli(*args, "--json", "-")
        assert (status, err) == (0, "")
        return json.loads(out)

    return call
