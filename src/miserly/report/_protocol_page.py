"""A protocol as a drawing and as one page to print: SVG and HTML without scripts, which need no other file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from miserly.frontiers import figure

if TYPE_CHECKING:
    from miserly.report._protocol import Protocol, ProtocolStep

WIDTH, LINE, INDENT, TOP = 1000, 40, 26, 46
SHARE_AT, PAID_AT, RIGHT_AT = 640, 745, 850
LETTER = 7.4  # width of a letter at 13 pixels, on the safe side
COLOURS = ("#00659f", "#b34700", "#00724f", "#8e3d72", "#7a5600", "#33607a", "#333333")
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.s{font-size:12px;fill:#555}.b{font-weight:600}"
    ".w{fill:#fff;font-weight:600}.l{stroke:#999;fill:none}"
)
PAGE_STYLE = """@page { size: A4; margin: 12mm }
body { font: 11pt/1.4 system-ui, sans-serif; color: #222; max-width: 1000px; margin: 1rem auto; padding: 0 1rem }
h1 { font-size: 16pt; margin: 0 0 .3em } h2 { font-size: 12pt; margin: 1em 0 .3em } svg { width: 100%; height: auto }
table { border-collapse: collapse } th, td { text-align: left; padding: .2em 1em .2em 0; border-bottom: 1px solid #ccc }
ul { margin: .2em 0; columns: 2; padding-left: 1.2em; font-size: 10pt } .note { color: #555; font-size: 9.5pt }
@media print { body { font-size: 9.5pt; margin: 0 } h1 { font-size: 14pt } svg { max-height: 170mm } }"""


class _Line(NamedTuple):
    """A step where it stands: its number and depth, the line of the step before it, and the result that leads here."""

    number: int
    depth: int
    parent: int
    answer: str


def _lines(protocol: Protocol, line: _Line, found: list[_Line]) -> list[_Line]:
    """The steps in the order in which they are read, each below the question before it."""
    here = len(found)
    found.append(line)
    step = protocol.steps[line.number]
    for side, result, after in (("yes", step.question, step.yes), ("no", step.otherwise, step.no)):
        if after is not None:
            answer = f"{result} or missing" if step.missing == side else result
            _lines(protocol, _Line(after, line.depth + 1, here, answer), found)
    return found


def as_svg(protocol: Protocol) -> str:
    """One line for each step: the result that leads there, what to order or to predict; then rows, price, shares."""
    lines = _lines(protocol, _Line(0, 0, -1, ""), [])
    height = TOP + LINE * len(lines) + 8
    labels = list(dict.fromkeys(s.prediction for s in protocol.steps if not s.question))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(protocol.headline(), quote=True)}">',
        f'<style>{STYLE}</style><rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        *(_text(x, 24, word, "s") for x, word in _heads(protocol)),
        f'<path class="l" d="M14 34H{WIDTH - 14}"/>',
    ]
    for at, line in enumerate(lines):
        parts += _elbow(at, line)
        parts += _step(protocol, protocol.steps[line.number], TOP + LINE * at, line, labels)
    return "".join([*parts, "</svg>"])


def _heads(protocol: Protocol) -> list[tuple[int, str]]:
    right = protocol.named(protocol.positive) if protocol.positive else "right" if protocol.is_class else "mean label"
    if protocol.is_class:
        right = _shortened(right, (WIDTH - RIGHT_AT) / LETTER - 7) + " (95 %)"
    return [(14, "step"), (SHARE_AT, "rows"), (PAID_AT, f"paid, {protocol.unit}"), (RIGHT_AT, right)]


def _elbow(at: int, line: _Line) -> Iterator[str]:
    if line.parent >= 0:
        x, y = 14 + INDENT * (line.depth - 1) + 8, TOP + LINE * at + 15
        yield f'<path class="l" d="M{x} {TOP + LINE * line.parent + 30}V{y}H{x + INDENT - 10}"/>'


def _step(protocol: Protocol, step: ProtocolStep, y: int, line: _Line, labels: list[str]) -> Iterator[str]:
    x = 14 + INDENT * line.depth
    space = SHARE_AT - 16 - x
    action = step.action + (f" ({figure(step.price)} {protocol.unit})" if step.price > 0 else "")
    answer = f"{line.answer}: " if line.answer else ""
    if step.question:
        yield _fitted(x, y + 13, answer, "", space)
        yield _fitted(x, y + 29, action, "b", space)
    else:
        word = f"predict {protocol.named(step.prediction)}"
        before = f"{answer}{action + ', then' if action else ''}".strip()
        start = x + len(before) * LETTER + (8 if before else 0)
        start = min(start, SHARE_AT - 24 - len(word) * LETTER)
        yield _fitted(x, y + 19, before, "", start - x)
        colour = COLOURS[labels.index(step.prediction) % len(COLOURS)] if protocol.is_class else COLOURS[0]
        size = f'width="{len(word) * LETTER + 14:.0f}" height="23" rx="5"'
        yield f'<rect x="{start:.0f}" y="{y + 3}" {size} fill="{colour}"/>'
        yield _text(start + 7, y + 19, word, "w")
    yield f'<rect x="{SHARE_AT}" y="{y + 24}" width="{88 * step.share:.1f}" height="4" fill="#8aa"/>'
    yield _text(SHARE_AT, y + 19, f"{_share(step.share)} ({step.rows:,})", "s")
    yield _text(PAID_AT, y + 19, figure(step.paid), "s")
    share = step.risk or step.right
    if share is not None:
        yield _text(RIGHT_AT, y + 19, percents(share) if protocol.is_class else figure(share[0]), "s")


def _fitted(x: float, y: float, words: str, kind: str, space: float) -> str:
    """Text that is cut where the next column begins; the whole of it is its tooltip."""
    letters = max(4, int(space / LETTER))
    if len(words) <= letters:
        return _text(x, y, words, kind)
    cut = escape(_shortened(words, letters))
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}"><title>{escape(words)}</title>{cut}</text>'


def _shortened(words: str, letters: float) -> str:
    return words if len(words) <= letters else words[: max(1, int(letters) - 1)] + "…"


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{escape(words)}</text>'


def as_html(protocol: Protocol, title: str) -> str:
    """The page to print."""
    missing = "".join(f"<li>{escape(sentence)}</li>" for sentence in protocol.missing_results())
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{PAGE_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><p>{escape(protocol.headline())}</p>{as_svg(protocol)}",
        f"<h2>If a result is missing</h2><ul>{missing}</ul>" if missing else "",
        _rates(protocol),
        "</body></html>",
    ]
    return "".join(parts) + "\n"


def _rates(protocol: Protocol) -> str:
    if not protocol.rates:
        return ""
    heads = ("class", "sensitivity", "specificity", "positive predictive value", "negative predictive value")
    head = "".join(f"<th>{name}</th>" for name in heads)
    rows = "".join(
        f"<tr><th>{escape(protocol.named(rate.label))}</th>"
        + "".join(f"<td>{percents(r)}</td>" for r in (rate.sensitivity, rate.specificity, rate.positive, rate.negative))
        + "</tr>"
        for rate in protocol.rates
    )
    note = f"Shares of {protocol.n_rows:,} rows with Wilson's 95 % intervals."
    return f'<h2>How well it finds each class</h2><table><tr>{head}</tr>{rows}</table><p class="note">{note}</p>'


def _share(share: float) -> str:
    return "< 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def percents(rate: tuple[float, float, float]) -> str:
    """A share with its interval, in percent; "none" where there is nothing to count."""
    share, low, high = rate
    return "none" if math.isnan(share) else f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
