"""The page at `/`: a form for one case, which asks /v1/next what to order; and the routes in words, for programs."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from miserly import __version__
from miserly._display import web_asset
from miserly.plan import Menu, Plan
from miserly.schema import Column

LOSSES = {"identity": "squared error"}  # of other links: the log loss
LEAD = (
    "Enter what is known, and see the prediction{}, what to order next, what it costs and what it is expected to gain. "
    "Any order will do, and anything may be unavailable."
)
LEAD_LISTS = (
    "This plan compares the documents of a query, which a form cannot ask for one by one: see the routes below."
)


def form_page(plan: Plan, menu: Menu | None, summary: str, routes: str, budget: float | None) -> tuple[str, str]:
    """The page and the content security policy that it is sent with.

    Parameters
    ----------
    plan : Plan
        What answers; of a menu, any of its plans.
    menu : Menu or None
        The menu, if one is served.
    summary : str
        What is served, in words.
    routes : str
        The rows of the table of routes, as HTML.
    budget : float or None
        What the field for the budget holds at first.
    """
    plans = [plan] if menu is None else list(menu.plans)
    is_form = not any(p.by_query for p in plans)
    label = None if plan.schema is None else plan.schema.label
    parts = {
        "title": "One case, step by step" if is_form else "Miserly",
        "lead": LEAD.format(f" of “{label}”" if label else "") if is_form else LEAD_LISTS,
        "unit": plan.costs.unit,
        "summary": summary,
        "version": __version__,
    }
    script = _script() if is_form else ""
    raw = {"style": _style(), "script": script, "routes": routes, "data": _json(form_data(plans, budget))}
    texts = {**{name: escape(text) for name, text in parts.items()}, **raw}
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: texts[match[1]], _asset("form.html"))
    return page, policy(script)


def form_data(plans: list[Plan], budget: float | None) -> dict[str, Any]:
    """What the form asks for: the features in use, how their values are written, and what brings them."""
    first = plans[0]
    used = sorted({f for p in plans for f in p.used_features})
    return {
        "unit": first.costs.unit,
        "budget": budget,
        "classes": None if first.classes is None else first.classes.tolist(),
        "loss": LOSSES.get(first.link, "log loss"),
        "canMiss": all(p.can_miss for p in plans),
        "words": first.schema is not None,
        "inputs": [_input(first, first.costs.features[f]) for f in used],
    }


def _input(plan: Plan, name: str) -> dict[str, Any]:
    known = plan.schema is not None and name in plan.schema
    column = plan.schema[name] if known and plan.schema is not None else Column(name)
    choices = None
    if column.kind == "boolean":
        choices = [["no", False], ["yes", True]]
    elif column.kind == "category":
        choices = [[str(value), value] for value in column.categories]
    return {
        "name": name,
        "kind": column.kind,
        "unit": column.unit,
        "format": column.format,
        "choices": choices,
        "needs": list(plan.costs.needs[name]),
    }


def policy(script: str) -> str:
    """A content security policy: this script and this style, questions to this server, nothing else."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(_style())}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _json(content: Any) -> str:
    """JSON that may stand inside a script element, whatever names it holds."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, default=str).replace("<", "\\u003c")


@cache
def _style() -> str:
    return web_asset("look.css") + _asset("form.css")


@cache
def _script() -> str:
    return web_asset("words.js") + _asset("form.js")


@cache
def _asset(name: str) -> str:
    return files("miserly.serve").joinpath("assets", name).read_text(encoding="utf-8")
