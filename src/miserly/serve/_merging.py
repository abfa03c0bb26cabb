"""The metrics of several processes in one page: counts are added, the largest of other figures is shown."""

from __future__ import annotations

from collections.abc import Iterable

SUMMED_GAUGES = {
    "miserly_body_bytes",
    "miserly_calls_running",
    "miserly_requests_in_flight",
    "miserly_requests_limit",
    "miserly_requests_waiting",
}


def merge_pages(pages: Iterable[bytes], is_gone: bool = False) -> bytes:
    """Merge pages in Prometheus' text format.

    Parameters
    ----------
    pages : iterable of bytes
        One for each process.
    is_gone : bool, default False
        Whether the processes have ended: then only what is counted is kept, not how things are now.
    """
    heads: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    samples: dict[str, dict[str, float]] = {}
    for page in pages:
        family = ""
        for line in page.decode().splitlines():
            if line.startswith("# "):
                _, word, family, rest = line.split(" ", 3)
                if word == "TYPE":
                    kinds[family] = rest
                if line not in heads.setdefault(family, []):
                    heads[family].append(line)
            elif line:
                name, _, figure = line.rpartition(" ")
                here = samples.setdefault(family, {})
                value = float(figure)
                if name not in here:
                    here[name] = value
                elif kinds.get(family) == "gauge" and family not in SUMMED_GAUGES:
                    here[name] = max(here[name], value)
                else:
                    here[name] += value
    lines = []
    for family, found in heads.items():
        if is_gone and kinds.get(family) == "gauge":
            continue
        lines += found
        lines += [f"{name} {value!r}" for name, value in samples.get(family, {}).items()]
    return ("\n".join(lines) + "\n").encode() if lines else b""
