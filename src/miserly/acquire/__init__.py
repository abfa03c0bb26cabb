"""Buying features on demand: extractors, the runner, its answers, the cache, and measured prices."""

from miserly.acquire.answer import Answer, Call, Ranking
from miserly.acquire.cache import Cache
from miserly.acquire.extractor import Extractor, Pair, extractor
from miserly.acquire.kit import readers
from miserly.acquire.profiling import Profile, profile
from miserly.acquire.redis_cache import RedisCache
from miserly.acquire.runner import OnDemand

__all__ = [
    "Answer",
    "Cache",
    "Call",
    "Extractor",
    "OnDemand",
    "Pair",
    "Profile",
    "Ranking",
    "RedisCache",
    "extractor",
    "profile",
    "readers",
]
