"""``with profile() as recording:`` — the functions of a Python program under the meters, from inside the program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..model import Recording
from .record import record
from .stacks import INTERVAL_S, Profiling


@contextmanager
def profile(
    output: str | os.PathLike[str] | None = None,
    *,
    mode: str = "sample",
    meters: Sequence[str] | None = (),
    interval_s: float | None = None,
    stack_interval_s: float = INTERVAL_S,
    memory: bool = False,
    lines: bool = False,
) -> Iterator[Recording]:
    """Meter and profile the block, or as a decorator the function; the recording is empty until the block has ended.

    ``functions(recording)`` then says whose joules. ``mode`` is sample, trace or cprofile; ``output`` keeps the
    recording as a new ``*.watt`` folder (with ``profile.prof`` in the mode cprofile). ``memory`` adds resident memory
    and what each line grew it by.
    """
    how = Profiling(mode, stack_interval_s, memory, lines or (memory and mode != "trace")).checked()
    with record(output, meters=meters, interval_s=interval_s, profiling=how) as recording:
        yield recording
