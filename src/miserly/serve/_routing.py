"""Several versions side by side: which one answers a request, and which ones only run beside it to be compared."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from miserly.plan import Menu, Plan
from miserly.runtime import Answer
from miserly.serve._rollout import check_compatible
from miserly.serve._runner_pool import ActivePlan, RunnerPool

MOST_SHADOWS = 64  # requests that shadows answer at once; the rest are not compared, so that they hold up nobody
SHADOW_SECONDS = 30.0


class Router:
    """Chooses the version that answers a request, by a hash of its key.

    Parameters
    ----------
    champion : RunnerPool
        Answers what no challenger does.
    challengers : sequence of (Plan or Menu, float), default ()
        Others, with the share of keys that each answers, in percent.
    shadows : sequence of Plan or Menu, default ()
        Run beside each request of one row; their answers are compared and not sent.
    """

    def __init__(
        self,
        champion: RunnerPool,
        challengers: Sequence[tuple[Plan | Menu, float]] = (),
        shadows: Sequence[Plan | Menu] = (),
    ) -> None:
        shares = [share for _, share in challengers]
        if not all(0 < share <= 100 for share in shares) or sum(shares) > 100:
            raise ValueError(f"Shares of challengers are above 0 and at most 100 percent together, got {shares}.")
        served = champion.active.menu or champion.active.plan
        for plan in (*(plan for plan, _ in challengers), *shadows):
            check_compatible(served, plan, needs_features=champion.active.has_rows_at_hand)
        self._champion = champion
        self._challengers = [champion.beside(plan) for plan, _ in challengers]
        self._bounds = list(accumulate(shares))
        self._shadows = [champion.beside(plan) for plan in shadows]
        self._running: set[asyncio.Task[None]] = set()
        self.compared: Counter[tuple[str, str, str]] = Counter()  # answered by, shadow, how it compares
        self.shadow_cost: Counter[str] = Counter()

    def choose(self, body: bytes, headers: Iterable[tuple[bytes, bytes]]) -> RunnerPool:
        """The pool that answers: by the header `Miserly-Key` or, without one, by the body."""
        if not self._bounds:
            return self._champion
        key = next((value for name, value in headers if name == b"miserly-key"), body)
        place = 100.0 * int.from_bytes(blake2b(key, digest_size=8).digest(), "little") / 2.0**64
        for bound, pool in zip(self._bounds, self._challengers):
            if place < bound:
                return pool
        return self._champion

    def compare(self, answer: Answer, by: str, ask: Callable[[ActivePlan], Awaitable[Answer]]) -> None:
        """Let the shadows answer the same row after it was answered, and count how they compare."""
        for pool in self._shadows:
            if len(self._running) >= MOST_SHADOWS:
                self.compared[by, pool.active.version, "skipped"] += 1
                continue
            task = asyncio.get_running_loop().create_task(self._compare(pool.active, answer, by, ask))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _compare(
        self, shadow: ActivePlan, answer: Answer, by: str, ask: Callable[[ActivePlan], Awaitable[Answer]]
    ) -> None:
        try:
            async with asyncio.timeout(SHADOW_SECONDS):
                other = await ask(shadow)
        except Exception:  # a shadow that fails is a result of the comparison, and nobody else's trouble
            self.compared[by, shadow.version, "failed"] += 1
            return
        self.compared[by, shadow.version, "same" if _is_same(answer.value, other.value) else "other"] += 1
        self.shadow_cost[shadow.version] += other.cost  # type: ignore[assignment]

    async def aclose(self) -> None:
        """End the comparisons and the runners of challengers and shadows."""
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*(pool.aclose() for pool in (*self._challengers, *self._shadows)))


def _is_same(first: Any, second: Any) -> bool:
    same = first == second
    return bool(same.all() if hasattr(same, "all") else same)
