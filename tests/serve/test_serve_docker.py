"""The steps of the Dockerfile in a fresh virtual environment: what a daemon would do, without one.

Not done: the base image itself, the second stage's own user, and the copy between the stages.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from serve.test_serve_process import plan_of

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")]


def steps(name, text=TEXT):
    return re.findall(rf"^\s*{name} (.*)$", text, re.MULTILINE)


def environment(stage, inside):
    """What ENV sets, with paths of the image moved into a folder."""
    found = dict(pair.split("=", 1) for line in steps("ENV", stage) for pair in line.split())
    return {name: inside(value.replace("$PATH", os.environ["PATH"])) for name, value in found.items()}


def test_the_steps_build_a_server_that_answers(tmp_path):
    first, second = re.split(r"^FROM .*$", TEXT, flags=re.MULTILINE)[1:]
    source, image = tmp_path / "src", tmp_path / "image"
    source.mkdir()
    (image / "opt").mkdir(parents=True)

    def inside(text):
        return text.replace("/opt/miserly", f"{image}/opt/miserly").replace("/srv", f"{image}/srv")

    for line in (line for line in steps("COPY", first) if "--from" not in line):
        *parts, target = line.split()
        for part in parts:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, source / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, source / target)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    built = clean | environment(first, inside)
    for command in steps("RUN", first):
        command = inside(command).replace("python -m venv", f"{sys.executable} -m venv")
        done = subprocess.run(["sh", "-c", command], cwd=source, env=built, capture_output=True, text=True)
        if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
            pytest.skip(f"pip finds no packages here: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr[-3000:]
    kernels = {path.relative_to(image): path.stat().st_mtime_ns for path in image.rglob("*.nbc")}
    assert kernels, "warmup compiled the kernels into the image"

    (image / "srv").mkdir()
    plan_of(2.0, "x").save(image / "srv/model.plan")
    entry = json.loads(steps("ENTRYPOINT", second)[0]) + json.loads(inside(steps("CMD", second)[-1]))
    running = clean | environment(second, inside) | {"MISERLY_SERVE_PORT": "0", "MISERLY_SERVE_HOST": "127.0.0.1"}
    program = shutil.which(entry[0], path=running["PATH"])
    assert program is not None
    assert Path(program).is_relative_to(image), "the command of the image, not of this machine"
    process = subprocess.Popen([program, *entry[1:]], cwd=image / "srv", env=running, stderr=subprocess.PIPE, text=True)
    try:
        port = next(found[1] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
        check = json.loads(re.search(r"HEALTHCHECK.*?CMD (\[.*\])", second)[1])
        check = [part.replace(":8000", f":{port}") for part in check]
        until = time.monotonic() + 60
        while subprocess.run(check, env=running, capture_output=True).returncode:
            assert time.monotonic() < until, "the health check fails"
            time.sleep(0.2)
        body = json.dumps({"row": {"x": 1.5}}).encode()
        address = f"http://127.0.0.1:{port}/v1/predict"
        with urllib.request.urlopen(urllib.request.Request(address, body), timeout=30) as response:
            assert json.loads(response.read())["value"] == 3.0
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert subprocess.run(check, env=running, capture_output=True).returncode != 0, "the check can fail"
    finally:
        process.kill()
        process.wait()
    after = {path.relative_to(image): path.stat().st_mtime_ns for path in image.rglob("*.nbc")}
    assert sorted(map(str, set(after) - set(kernels))) == [], "nothing was compiled to serve"
