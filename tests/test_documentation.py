"""What the README shows runs as it stands there, in an empty folder."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_readmes_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["walk"].stopped == "answered"
    assert names["walk"].cost <= 900
    assert "buys" in capsys.readouterr().out


def test_the_readmes_commands_exist():
    from miserly.cli.main import cli

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in re.findall(r"^miserly (.*?)(?:#.*)?$", text, re.MULTILINE):
        name, *words = line.split()
        options = {o for p in cli.commands[name].params for o in p.opts}
        assert {w for w in words if w.startswith("-")} <= options


def test_the_page_of_the_command_line_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs/cli.py"))["page"]()
    assert page == (ROOT / "docs/cli.md").read_text(encoding="utf-8"), "run `make docs`"


def test_links_between_documents_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_no_room_is_forgotten_in_the_contributors_map():
    rooms = {p.parent.name for p in (ROOT / "src/miserly").glob("*/__init__.py")}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"`{room}`" in text for room in rooms)
