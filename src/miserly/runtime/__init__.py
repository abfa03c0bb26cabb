"""Buying features on demand: extractors, the runner, its answers, the cache, and measured prices."""

from miserly.runtime._advise import Advice, Candidate, advise
from miserly.runtime._answer import Answer, Call, Ranking
from miserly.runtime._cache import Cache
from miserly.runtime._calls import BadRow
from miserly.runtime._clock import REAL as REAL
from miserly.runtime._clock import Clock, VirtualClock
from miserly.runtime._extractor import Extractor, Pair, extractor
from miserly.runtime._extractor_set import did_you_mean as did_you_mean
from miserly.runtime._extractor_set import readers
from miserly.runtime._monitor import Finding, compare_log, compare_rows
from miserly.runtime._monitor import expected as expected
from miserly.runtime._profiling import PER_SECOND as PER_SECOND
from miserly.runtime._profiling import Profile, profile
from miserly.runtime._redis_cache import RedisCache
from miserly.runtime._runner import OnDemand
from miserly.runtime._spending import SpendCap, SpendCapReached, Spent

__all__ = [
    "Advice",
    "Answer",
    "BadRow",
    "Cache",
    "Call",
    "Candidate",
    "Clock",
    "Extractor",
    "Finding",
    "OnDemand",
    "Pair",
    "Profile",
    "Ranking",
    "RedisCache",
    "SpendCap",
    "SpendCapReached",
    "Spent",
    "VirtualClock",
    "advise",
    "compare_log",
    "compare_rows",
    "extractor",
    "profile",
    "readers",
]
