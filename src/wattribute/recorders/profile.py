"""``with profile() as recorder:`` records the functions of a Python program under the meters, from inside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..errors import names_keywords
from .record import Recorder, record
from .stacks import INTERVAL_S, Profiling


@names_keywords
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
    overwrite: bool = False,
) -> Iterator[Recorder]:
    """Meter and profile the block, or as a decorator the function; the recording is there once the block has ended.

    ``functions(recorder.recording)`` says whose joules. ``mode`` is sample, trace or cprofile; ``output`` keeps the
    recording as a new ``*.watt`` folder (with ``profile.prof`` in the mode cprofile), with ``overwrite`` in the place
    of an earlier one. ``memory`` adds resident memory and what each line grew it by; ``lines`` records lines.
    ``meters`` and ``interval_s`` are those of :func:`wattribute.record`; ``stack_interval_s`` is the time between two
    stacks.
    """
    how = Profiling(mode, stack_interval_s, memory, lines or (memory and mode != "trace")).checked()
    with record(output, meters=meters, interval_s=interval_s, profiling=how, overwrite=overwrite) as recorder:
        yield recorder
