"""Rules of the source tree that no linter holds: names, lengths, imports, words, and where prices are added."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from integration import INTEGRATION

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/miserly"
PROSE = [
    path
    for folder in (PACKAGE, ROOT / "docs")
    for path in sorted(folder.rglob("*"))
    if path.suffix in {".py", ".md", ".js", ".html", ".css", ".svg", ".toml", ".txt"}
] + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

WORDS = "dear|dearer|dearest|anew|settl\\w*|shops?|shelf|shelves|clerks?|elsewhere|rooms?|meddled|told"
PHRASES = r"cannot be had|in turn(?![a-z])"
FORBIDDEN = re.compile(f"(?<![A-Za-z])({WORDS})(?![A-Za-z])|{PHRASES}", re.IGNORECASE)

MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_OF_A_KERNEL = 120
MOST_MODULES_BESIDE_A_PAPER = 6


@cache
def modules():
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def short(path):
    return str(path.relative_to(ROOT))


def duplicate_classes():
    files = {}
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append(short(path))
    return {name: len(where) - 1 for name, where in files.items() if len(where) > 1}


def deep_imports():
    """Imports of a private module `_x` from outside the package that contains it."""
    found = Counter()
    for path, tree in modules().items():
        inside = ["miserly", *path.relative_to(PACKAGE).parent.parts]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("miserly."):
                parts = node.module.split(".")
                private = [k for k, part in enumerate(parts) if part.startswith("_")]
                if private and inside[: private[0]] != parts[: private[0]]:
                    found[short(path)] += 1
    return found


def questions_about_oneself():
    return Counter(
        short(path)
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == "self"
    )


def forbidden_words():
    return (
        Counter({short(path): len(FORBIDDEN.findall(path.read_text(encoding="utf-8"))) for path in PROSE}) + Counter()
    )


def _is_len(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def sums_of_prices():
    """Calls of `sum` and `fsum`, as functions or methods, over something whose name holds "price"."""
    found = Counter()
    for path, tree in modules().items():
        if path.parent.name == "costs":
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name not in {"sum", "fsum"}:
                continue
            counted = {id(n) for call in ast.walk(node) if _is_len(call) for n in ast.walk(call)}
            inside = [n for n in ast.walk(node) if id(n) not in counted]
            names = {n.id for n in inside if isinstance(n, ast.Name)}
            names |= {n.attr for n in inside if isinstance(n, ast.Attribute)}
            found[short(path)] += any(re.fullmatch(r"_?prices?(_list)?", n) for n in names)
    return found + Counter()


def code_lines(path, tree):
    """Lines that are neither blank nor a comment nor part of a docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    words = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            words |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return sum(number not in words and line.strip()[:1] not in ("", "#") for number, line in lines)


def long_files():
    lengths = {short(path): code_lines(path, tree) for path, tree in modules().items()}
    return {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE}


def long_functions():
    found = Counter()
    for path, tree in modules().items():
        most = MOST_LINES_OF_A_KERNEL if path.parent.name == "kernels" else MOST_LINES_OF_A_FUNCTION
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                words = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
                found[short(path)] += node.end_lineno - node.lineno + 1 - words > most
    return found + Counter()


def _defining_modules(package):
    """Where each name that a package exports is defined."""
    tree = modules()[PACKAGE / package / "__init__.py"]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: node.module for node in imports for alias in node.names}


def modules_read_beside(folder):
    """The modules of solvers and boosting whose names a paper's folder imports."""
    homes = {f"miserly.{package}": _defining_modules(package) for package in ("boosting", "solvers")}
    return {
        homes[node.module][alias.name]
        for path, tree in modules().items()
        if path.parent == PACKAGE / "estimators" / folder
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in homes
        for alias in node.names
    }


RULES = {
    "class names defined twice": duplicate_classes,
    "deep imports": deep_imports,
    "isinstance(self, …)": questions_about_oneself,
    "forbidden words": forbidden_words,
    "sums of prices outside costs": sums_of_prices,
    "files that are too long": long_files,
    "functions that are too long": long_functions,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_source_tree_keeps(rule):
    assert dict(RULES[rule]()) == {}


@pytest.mark.parametrize("folder", ["afr", "astc", "cronus", "cstc", "cvm", "fast_frugal"])
def test_a_paper_is_read_in_its_folder_and_few_modules(folder):
    assert len(modules_read_beside(folder)) <= MOST_MODULES_BESIDE_A_PAPER


def test_the_greedy_miser_reads_the_engine_and_what_only_it_offers():
    """The paper needs the first six; the others are the miser's alone: remote rows, files, checkpoints and the like."""
    paper = {"_backend", "_binning", "_boost", "_losses", "_pricing", "_trees"}
    door = {"_binned_dataset", "_binned_traversal", "_calibration", "_checkpoint", "_constraints"}
    door |= {"_each_row", "_loss_registry", "_remote"}
    assert {name.rsplit(".", 1)[1] for name in modules_read_beside("greedy_miser")} == paper | door


def test_the_rules_see_what_they_forbid():
    """Each pattern matches a violation of it, so that an empty result means something."""
    for bad in ("dearest", "ANEW", "settles", "_settle_", "a shop", "PathShop told", "in turn.", "cannot be had"):
        assert FORBIDDEN.search(bad), bad
    for good in ("endear", "workshop", "mushroom", "in turning", "bookshelf"):
        assert not FORBIDDEN.search(good), good


def test_what_make_quick_leaves_out_exists():
    for place in INTEGRATION:
        assert list((ROOT / "tests").glob(f"{place}*")), place
