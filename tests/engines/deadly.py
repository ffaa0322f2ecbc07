"""A span source in whose hands a process dies once: what a node that goes down looks like from the outside."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Deadly:
    """Passes everything on; the first time ``location`` is folded anywhere, the process ``victim`` (None: the one that
    folds) is killed. ``marker`` remembers that it happened; with ``again`` it happens every time. ``after_s`` leaves
    what came before the time to arrive."""

    inner: Any
    location: int
    marker: Path
    victim: int | None = None
    again: bool = False
    after_s: float = 0

    def locations(self):
        return self.inner.locations()

    def spans(self, location):
        return self.inner.spans(location)

    def busy(self, location, keep=None):
        return self.inner.busy(location, keep)

    def fold(self, location, curves, keys):
        if location == self.location and (self.again or not self.marker.exists()):
            self.marker.touch()
            time.sleep(self.after_s)
            os.kill(self.victim or os.getpid(), signal.SIGKILL)
        return self.inner.fold(location, curves, keys)

    def rows(self, *asked):
        self.inner.rows(*asked)

    def problems(self):
        return self.inner.problems()
