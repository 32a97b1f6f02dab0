import json
import signal

import pytest
from hypothesis import settings

from tests import makers

settings.register_profile("seeded", deadline=None, derandomize=True)  # the same examples in every run
settings.load_profile("seeded")

# A shell's background job, as CI may be one, ignores interrupts and hands that on; tests interrupt their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cli():
    """The command line itself, in this process: arguments → (status, standard output, standard error)."""
    return makers.invoke


@pytest.fixture
def answer():
    """The JSON that the command line writes for these arguments."""

    def call(*args):
        status, out, err = makers.invoke(*args, "--json", "-")
        assert (status, err) == (0, "")
        return json.loads(out)

    return call
