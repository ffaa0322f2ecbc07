"""``with record() as recording:`` — the same recording as ``wattribute run`` makes, from inside a program."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from time import monotonic_ns

from .. import archive
from ..model import Recording
from . import clocks, ranks, regions, stacks
from .sampling import REGIONS, Sampling, check_interval, new_folder
from .stacks import Profiling


@contextmanager
def record(
    output: str | os.PathLike[str] | None = None,
    *,
    meters: Sequence[str] | None = (),
    interval_s: float | None = None,
    profiling: Profiling | None = None,
) -> Iterator[Recording]:
    """Meter the block and record the regions in it; ``recording`` is empty until the block has ended.

    ``output`` keeps it as a new ``*.watt`` folder. ``meters`` are names (``name`` or ``name:root``), by default all
    that work here; in a parallel job only the first rank of a node samples. Recordings may stand inside one another.
    ``profiling`` records the functions that run, too (:func:`.profile.profile`).
    """
    check_interval(interval_s)
    rank = ranks.of()
    scratch = None if output is not None else tempfile.mkdtemp(prefix="wattribute-")
    folder = new_folder(Path(output) if output is not None else Path(str(scratch), "recording.watt"))
    about = {"command": sys.argv, "host": os.uname().nodename, "clock": clocks.stamp()}
    about |= {"rank": rank.as_dict()} if rank else {}
    about |= {"profile": profiling.as_dict()} if profiling else {}
    sampling = Sampling(folder, meters if ranks.samples(rank) else None, interval_s, about=about)
    recording = Recording()
    try:
        try:
            sampling.start()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # we made it just now, and there is nothing in it
            raise
        regions.start(str(folder / REGIONS))
        sampling.tell({"start": monotonic_ns(), "pid": os.getpid(), "name": Path((sys.argv or [""])[0]).name})
        try:
            with stacks.recorded(profiling, str((folder / REGIONS).absolute())):
                yield recording
        finally:
            sampling.tell({"end": monotonic_ns()})
            _pass_on(regions.stop(), folder / REGIONS)
            _become(recording, sampling.stop())
            if output is not None:
                archive.fill(recording, folder)
                sampling.clean()
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _become(recording: Recording, whole: Recording) -> None:
    """Fill the recording that the user already holds."""
    for field in fields(Recording):
        object.__setattr__(recording, field.name, getattr(whole, field.name))


def _pass_on(outer: str | None, inner: Path) -> None:
    """A recording around this one sees its regions too."""
    if outer is not None:
        for path in inner.iterdir():
            with suppress(OSError):
                shutil.copy(path, outer)
