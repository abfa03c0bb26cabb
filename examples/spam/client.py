"""`python -m examples.spam.client URL [FOLDER] [--deadline-ms MS]`: ask a spam server about mails, one at a time."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from examples.spam.mails import generate, read_folder
from examples.spam.serving import as_text


def main(arguments: Sequence[str] | None = None) -> None:
    """Send mails, and tell what came back."""
    parser = argparse.ArgumentParser(prog="python -m examples.spam.client", description=__doc__)
    parser.add_argument("url", help="http://127.0.0.1:8000, say")
    parser.add_argument("folder", nargs="?", type=Path, help="mails, as for examples.spam; made up if absent")
    parser.add_argument("--deadline-ms", type=float, default=20.0)
    given = parser.parse_args(arguments)
    mails = generate(200, seed=1) if given.folder is None else read_folder(given.folder)
    connection = HTTPConnection(urlsplit(given.url).netloc, timeout=10)
    answers, seconds = [], []
    for mail in mails.raw:
        began = perf_counter()
        answers.append(ask(connection, {"row": as_text(mail), "deadline_ms": given.deadline_ms}))
        seconds.append(perf_counter() - began)
    right = np.mean([bool(answer["value"]) == truth for answer, truth in zip(answers, mails.is_spam)])
    reasons = ", ".join(f"{why} {n}" for why, n in Counter(answer["stopped"] for answer in answers).most_common())
    median, late = 1e3 * np.quantile(seconds, [0.5, 0.99])
    print(f"{len(answers)} mails: {right:.1%} right, {np.mean([a['cost'] for a in answers]):.3f} ms of CPU priced each")
    print(f"stopped: {reasons}; p50 {median:.2f} ms, p99 {late:.2f} ms on the client's side")
    most = max(answers, key=lambda answer: answer["cost"])
    print(f"the most expensive bought {', '.join(most['acquired'])}")


def ask(connection: HTTPConnection, question: dict[str, Any]) -> dict[str, Any]:
    """One request; what is refused is an error that says why."""
    connection.request("POST", "/v1/predict", json.dumps(question))
    response = connection.getresponse()
    answer: dict[str, Any] = json.loads(response.read())
    if response.status != 200:
        raise RuntimeError(" ".join(answer["error"].values()))
    return answer


if __name__ == "__main__":
    main()
