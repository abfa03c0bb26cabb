"""What can be known of a document for a query. Each takes all documents that want it at once (`many`), as services
somewhere else do; a wait stands for theirs. Prices are milliseconds for each document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import miserly as ms
from examples.search.corpus import SITE_QUALITY, TOPIC_OF, WORDS
from miserly.runtime import Pair

NUMBER = {word: i for i, word in enumerate(WORDS)}
SITE_SECONDS = 0.002
MEANING_SECONDS = 0.0001
COSTS = ms.CostTable(
    features=["n_title", "n_body", "first_place", "site_quality", "topic_share"],
    needs={
        "n_title": ["words"],
        "n_body": ["words"],
        "first_place": ["words"],
        "site_quality": ["site"],
        "topic_share": ["meaning"],
    },
    prices={"words": 0.01, "site": 0.05, "meaning": 0.1},
    unit="ms",
)


@ms.extractor("words", yields=["n_title", "n_body", "first_place"], many=True)
def words(pairs: Sequence[Pair]) -> list[tuple[float, float, float]]:
    """How many words of title and body the query has, and where the first of them stands."""
    terms, found = set(pairs[0].query.split()), []
    for pair in pairs:
        places = [i for i, word in enumerate(pair.document["body"].split()) if word in terms]
        in_title = sum(word in terms for word in pair.document["title"].split())
        found.append((float(in_title), float(len(places)), float(places[0]) if places else 99.0))
    return found


@ms.extractor("site", yields="site_quality", many=True)
async def site(pairs: Sequence[Pair]) -> list[float]:
    """A lookup of all sites at once, somewhere else."""
    await asyncio.sleep(SITE_SECONDS)
    return [float(SITE_QUALITY[pair.document["site"]]) for pair in pairs]


@ms.extractor("meaning", yields="topic_share", many=True)
async def meaning(pairs: Sequence[Pair]) -> list[float]:
    """What a large model somewhere else says: it takes its time for every document."""
    await asyncio.sleep(MEANING_SECONDS * len(pairs))
    topic = TOPIC_OF[NUMBER[pairs[0].query.split()[0]]]
    numbers = [[NUMBER[word] for word in pair.document["body"].split()] for pair in pairs]
    return [float((TOPIC_OF[found] == topic).mean()) for found in numbers]


EXTRACTORS = [words, site, meaning]
