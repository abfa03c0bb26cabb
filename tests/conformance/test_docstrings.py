"""Every public class and function: its docstring names its parameters, and its examples run.

Public is what `miserly.__all__` and the public packages name. `LATER` lists what is not documented yet; it may only
shrink.
"""

import doctest
import importlib
import inspect
import re

import numpy as np
import pytest

import miserly

PACKAGES = [name for name in miserly.__all__ if inspect.ismodule(getattr(miserly, name))] + ["estimators"]
HEADINGS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Examples", "References", "Notes", "See Also")
LATER = [
    "miserly.serve.Application",  # its parameters are those of the installed Litestar
]


def public():
    """Every documented thing by its dotted name, once."""
    found = {f"miserly.{n}": getattr(miserly, n) for n in miserly.__all__ if n not in PACKAGES}
    for package in PACKAGES:
        module = importlib.import_module(f"miserly.{package}")
        found |= {f"miserly.{package}.{name}": getattr(module, name) for name in getattr(module, "__all__", ())}
    named = {}
    for name, thing in found.items():
        if inspect.isclass(thing) or inspect.isfunction(thing):
            named.setdefault(id(thing), (name, thing))
    return {name: thing for name, thing in named.values() if not inspect.isclass(thing) or not is_base(thing)}


def is_base(kind):
    """Classes that only others build on, exceptions and protocols: they have no parameters of their own."""
    if inspect.isabstract(kind) or issubclass(kind, BaseException) or getattr(kind, "_is_protocol", False):
        return True
    return parameters(kind) == ["args", "kwargs"] or (parameters(kind) == [] and "__init__" not in kind.__dict__)


def sections(text):
    """The parts of a numpydoc docstring by their headings."""
    parts, heading = {"": []}, ""
    lines = inspect.cleandoc(text or "").split("\n")
    for line, under in zip(lines, [*lines[1:], ""]):
        if line in HEADINGS and re.fullmatch("-+", under):
            heading = line
            parts[heading] = []
        elif not re.fullmatch("-{3,}", line):
            parts[heading].append(line)
    return parts


def documented(thing):
    """The names in the section of parameters."""
    found = []
    for line in sections(thing.__doc__).get("Parameters", ()):
        if line and not line.startswith(" "):
            found += [name.strip().lstrip("*") for name in line.split(" :")[0].split(",")]
    return found


def parameters(thing):
    try:
        every = inspect.signature(thing).parameters.values()
    except ValueError:
        return []
    return [p.name for p in every if p.name not in ("self", "cls")]


PUBLIC = public()
NAMES = sorted(PUBLIC)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_documented(name):
    thing = PUBLIC[name]
    if name in LATER:
        pytest.skip("not documented yet")
    assert documented(thing) == parameters(thing)
    assert ">>>" in thing.__doc__, "no example"


@pytest.mark.parametrize("name", [name for name in NAMES if ">>>" in (PUBLIC[name].__doc__ or "")])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = PUBLIC[name]
    module = inspect.getmodule(thing)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    scope = {**vars(module), "np": np, "miserly": miserly}
    text = []
    for example in doctest.DocTestFinder(recurse=False).find(thing, name, module=module, globs=scope):
        runner.run(example, out=text.append)
    assert runner.failures == 0, "".join(text)
    assert runner.tries > 0 or "+SKIP" in thing.__doc__


def test_every_estimator_is_looked_at():
    from oracles.every_estimator import EVERY

    assert {kind.__name__ for kind in PUBLIC.values() if inspect.isclass(kind)} >= set(EVERY)
