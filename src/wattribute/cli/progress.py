"""The progress bar on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

DELAY_S = 1.0  # short work shows no bar


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Return a callback ``(done, whole)`` for a bar on a terminal's stderr, which appears after a second."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=None)
    delay = Timer(DELAY_S, bar.start)
    delay.daemon = True
    delay.start()
    try:
        yield lambda done, whole: bar.update(task, completed=done, total=max(whole, 1))
    finally:
        delay.cancel()
        delay.join()
        bar.stop()
