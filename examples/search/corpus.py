"""Made-up documents and queries: what a title says, what a body says, who wrote it, and what it means all matter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

N_TERMS, N_TOPICS, N_SITES = 400, 12, 50
WORDS = [f"w{i}" for i in range(N_TERMS)]
_RNG = np.random.default_rng(7)
TOPIC_OF = _RNG.integers(N_TOPICS, size=N_TERMS)
SITE_QUALITY = _RNG.normal(size=N_SITES)


class Listed(NamedTuple):
    """A query, the documents that an index found for it, and how good each of them is (0 to 4)."""

    query: str
    documents: list[dict[str, Any]]
    grades: np.ndarray


def listed(rng: np.random.Generator, n_documents: int) -> Listed:
    """One query with its documents, as JSON can say them."""
    terms = rng.choice(N_TERMS, 3, replace=False)
    topic = TOPIC_OF[terms[0]]
    documents, goodness = [], []
    for _ in range(n_documents):
        own = topic if rng.random() < 0.3 else rng.integers(N_TOPICS)
        body = np.where(
            rng.random(60) < 0.5, rng.choice(np.flatnonzero(own == TOPIC_OF), 60), rng.integers(N_TERMS, size=60)
        )
        body[: rng.poisson(2)] = rng.choice(terms)
        title = rng.choice(body, 5, replace=False)
        site = int(rng.integers(N_SITES))
        documents.append({"title": said(title), "body": said(body), "site": site})
        in_title, in_body = np.isin(title, terms).sum(), np.isin(body, terms).sum()
        same = np.mean(TOPIC_OF[body] == topic)
        goodness.append(0.5 * in_title + 0.3 * in_body + 0.6 * SITE_QUALITY[site] + 5.0 * same + 0.3 * rng.normal())
    return Listed(said(terms), documents, np.clip(np.round(np.array(goodness) - 2.0), 0, 4))


def said(terms: np.ndarray) -> str:
    """Terms as text."""
    return " ".join(WORDS[term] for term in terms)
