"""The command line without a process of its own."""

import sys
from contextlib import nullcontext
from io import StringIO

import pytest

from miserly.cli import main


def miserly(*args, cwd, code=0):
    """Run the command in a folder; returns what it printed."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) if code else nullcontext() as end:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["miserly", *map(str, args)])
        patch.setattr(sys, "stdout", out := StringIO())
        patch.setattr(sys, "stderr", err := StringIO())
        main()
    assert code == (0 if end is None else end.value.code)
    return err.getvalue() if code else out.getvalue()
