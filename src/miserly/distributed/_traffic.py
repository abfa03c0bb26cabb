"""What went over the wires."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """What a tree, or a fit that is not boosted, cost: bytes over all connections (of answers for trees, of questions
    too for others), messages, seconds in all and not spent computing."""

    n_bytes: int = 0
    n_messages: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    def and_message(self, n_bytes: int, seconds: float, computing: float) -> Traffic:
        """With one message more, which took so long and was computed on for a part of it."""
        waited = self.waited + max(0.0, seconds - computing)
        return Traffic(self.n_bytes + n_bytes, self.n_messages + 1, self.seconds + seconds, waited)

    @property
    def share(self) -> float:
        """Which part of the time nobody computed."""
        return self.waited / self.seconds if self.seconds else 0.0
