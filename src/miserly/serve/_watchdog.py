"""Two watchers beside the event loop: one says when it is stuck, one ends the process when its time is up."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from time import monotonic

from miserly.serve._metrics import Telemetry

log = logging.getLogger("miserly.serve")
STUCK, LOOK = 1.0, 0.25  # seconds


class LoopWatchdog:
    """Logs where the event loop is when it does not come round for a second.

    Parameters
    ----------
    telemetry : Telemetry
        Counts stalls and shows the lag.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._beat = monotonic()
        self._owner = threading.get_ident()
        self._end = threading.Event()
        threading.Thread(target=self._look, name="miserly-watchdog", daemon=True).start()

    def beat(self, expected: float) -> None:
        """The loop came round; it was to do so after `expected` seconds."""
        now = monotonic()
        lag = max(0.0, now - self._beat - expected)
        self._telemetry.loop_lag = max(lag, 0.9 * self._telemetry.loop_lag)
        self._beat = now

    def stop(self) -> None:
        """End the watching."""
        self._end.set()

    def _look(self) -> None:
        is_stuck = False
        while not self._end.wait(LOOK):
            was_stuck, is_stuck = is_stuck, monotonic() - self._beat > STUCK
            if is_stuck and not was_stuck:
                self._telemetry.n_stalls += 1
                frame = sys._current_frames().get(self._owner)
                where = "".join(traceback.format_stack(frame)[-3:]) if frame else ""
                log.warning("The event loop is stuck; no request is answered meanwhile. It is here:\n%s", where)


def end_by(seconds: float, say: Callable[[], str]) -> threading.Event:
    """End the process after some seconds, whatever hangs; set the event that is returned to let it live."""
    done = threading.Event()

    def wait() -> None:
        if not done.wait(seconds):
            log.error("%s", say())
            logging.shutdown()
            os._exit(1)

    threading.Thread(target=wait, name="miserly-stop", daemon=True).start()
    return done
