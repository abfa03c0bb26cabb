"""What went over the wires."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """What a tree, or a whole fit that is not of trees, sent over the wires, and how long that took.

    Parameters
    ----------
    n_bytes : int, default=0
        Bytes over all connections: of the replies for a tree, of the questions too for other fits.
    n_messages : int, default=0
        How many messages were sent.
    seconds : float, default=0.0
        How long all messages took until their replies were there.
    waited : float, default=0.0
        The part of these seconds in which nobody computed; from 0 to `seconds`.

    Examples
    --------
    >>> traffic = Traffic().and_message(n_bytes=1000, seconds=2.0, computing=1.5)
    >>> traffic
    Traffic(n_bytes=1000, n_messages=1, seconds=2.0, waited=0.5)
    >>> traffic.share
    0.25
    """

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
