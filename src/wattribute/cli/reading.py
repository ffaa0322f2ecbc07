"""Options every verb that reads a recording shares, as annotated types, and the progress bar on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Annotated, Optional

import typer

# Typer reads these types at run time, on Python 3.10 too, and wants Optional
Process = Annotated[Optional[str], typer.Option(metavar="RE", help="Only processes whose name matches.")]  # noqa: UP045
Frame = Annotated[Optional[str], typer.Option(metavar="RE", help="Only frames whose name matches.")]  # noqa: UP045
ExcludeFrame = Annotated[Optional[str], typer.Option(metavar="RE", help="Leave out frames whose name matches.")]  # noqa: UP045
Metric = Annotated[Optional[str], typer.Option(metavar="RE", help="Only metrics whose name matches.")]  # noqa: UP045
MetricKinds = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--metric-kind", metavar="RE=KIND:UNIT", help="What matching metrics are, for example energy=counter:uJ."
    ),
]
Threads = Annotated[Optional[int], typer.Option(min=1, help="How many threads read; all cores by default.")]  # noqa: UP045

_PATIENCE_S = 1.0


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback ``(done, whole)`` for a bar on a terminal's stderr, which appears after a second."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=None)
    patience = Timer(_PATIENCE_S, bar.start)
    patience.daemon = True
    patience.start()
    try:
        yield lambda done, whole: bar.update(task, completed=done, total=max(whole, 1))
    finally:
        patience.cancel()
        patience.join()
        bar.stop()
