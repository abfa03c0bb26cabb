"""The interface described: OpenAPI made from the messages themselves."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from typing import Any

import msgspec

from miserly import __version__
from miserly.plan import Menu, Plan
from miserly.runtime import SpendCap
from miserly.serve._messages import (
    ErrorAnswer,
    ManyAnswer,
    NextAnswer,
    NextRequest,
    PredictAnswer,
    PredictRequest,
    RankAnswer,
    RankRequest,
)

LIMIT_HEADERS = {
    "Miserly-Budget": "Most that the row may cost, in the plan's unit. With one in the body, the smaller counts.",
    "Miserly-Deadline-Ms": "Milliseconds until an answer is wanted. With one in the body, the smaller counts.",
}
EXPLAIN = {
    "name": "explain",
    "in": "query",
    "description": "1: the answer says what each purchase moved the score, and what it cost.",
    "schema": {"type": "string", "enum": ["0", "1", "true", "false"]},
}
ROUTES: dict[str, tuple[str, str, Any]] = {
    "/v1/predict": (
        "post",
        "Answer one row or several, buying what the plan asks for",
        (PredictRequest, PredictAnswer, ManyAnswer),
    ),
    "/v1/rank": ("post", "Rank the documents of a query", (RankRequest, RankAnswer)),
    "/v1/next": ("post", "What to buy next for a row of which something is known", (NextRequest, NextAnswer)),
    "/v1/plan": ("get", "What the plan may buy, and its prices", "application/json"),
    "/healthz": ("get", "Whether the process lives", "text/plain"),
    "/readyz": ("get", "Whether it takes requests: 503 while it shuts down", "text/plain"),
    "/metrics": ("get", "Figures for Prometheus", "text/plain"),
}
REFUSALS = {
    "400": "The request is wrong: what, where, and how to do it right",
    "403": "A page of another site asks, or the Host header is not one of the server's",
    "408": "The body did not arrive in time",
    "413": "The body is too large",
    "415": "The body is compressed",
    "503": "The server has too much to do: try again after Retry-After seconds",
}


def description() -> dict[str, Any]:
    """The interface in OpenAPI 3.1."""
    kinds = [PredictRequest, PredictAnswer, ManyAnswer, RankRequest, RankAnswer, NextRequest, NextAnswer, ErrorAnswer]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Miserly", "version": __version__, "description": "A plan that buys features on demand."},
        "paths": {
            path: {method: _asking(summary, *what) if method == "post" else _looking(summary, what)}
            for path, (method, summary, what) in ROUTES.items()
        },
        "components": {"schemas": schemas},
    }


def _asking(summary: str, request: type, *answers: type) -> dict[str, Any]:
    number = {"type": "number", "minimum": 0}
    return {
        "summary": summary,
        "parameters": [
            {"name": name, "in": "header", "description": text, "schema": number}
            for name, text in LIMIT_HEADERS.items()
        ]
        + ([EXPLAIN] if request is PredictRequest else []),
        "requestBody": {"required": True, "content": _json(request)},
        "responses": {
            "200": {"description": "An answer, with the reason why it stopped", "content": _json(*answers)},
            **{code: {"description": text, "content": _json(ErrorAnswer)} for code, text in REFUSALS.items()},
        },
    }


def _looking(summary: str, media_type: str) -> dict[str, Any]:
    responses = {"200": {"description": summary, "content": {media_type: {}}}}
    if summary.startswith("Whether it takes"):
        responses["503"] = {"description": "It shuts down", "content": {media_type: {}}}
    return {"summary": summary, "responses": responses}


def _json(*kinds: type) -> dict[str, Any]:
    found = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds]
    return {"application/json": {"schema": found[0] if len(found) == 1 else {"anyOf": found}}}


def route_lines() -> str:
    """The routes as rows of an HTML table."""
    return "".join(
        f"<tr><td>{method.upper()}</td><td>{path}</td><td>{escape(text)}</td></tr>"
        for path, (method, text, _) in ROUTES.items()
    )


def summary(plan: Plan, menu: Menu | None) -> str:
    """What is served, in words."""
    return plan.summary() if menu is None else menu.describe()


def plan(plan: Plan, menu: Menu | None = None, version: str = "", spend_cap: SpendCap | None = None) -> dict[str, Any]:
    """A plan as clients see it: what it may buy, at which price, for which features, and what may still be spent."""
    costs = plan.costs
    plans = [plan] if menu is None else menu.plans
    used = sorted({f for p in plans for f in p.used_features})
    names = [costs.features[f] for f in used]
    serves: dict[str, list[str]] = {}
    for feature in names:
        for acquisition in costs.needs[feature]:
            serves.setdefault(acquisition, []).append(feature)
    return {
        "version": version,
        "summary": summary(plan, menu),
        "unit": costs.unit,
        "charge": plan.charge,
        "classes": None if plan.classes is None else plan.classes.tolist(),
        "features": names,
        "acquisitions": [{"name": a, "price": costs.prices[a], "features": fs} for a, fs in serves.items()],
        "evaluation": costs.evaluation_text,
        "most_expensive": max(p.tables.most_expensive for p in plans),
        "by_query": any(p.by_query for p in plans),
        "n_plans": len(plans),
        "certificates": [None if p.certificate is None else asdict(p.certificate) for p in plans],
        "spending": [] if spend_cap is None else [limit._asdict() for limit in spend_cap.status()],
    }
