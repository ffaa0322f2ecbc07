"""``with record() as recorder:`` makes, from inside a program, the recording that ``wattribute run`` makes of one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic_ns

from .. import archive
from ..errors import NoDataError, OutputError, names_keywords
from ..files import temporary_folder
from ..journal.ranks import rank_of
from ..model import Recording
from . import baselines, clocks, ranks, regions, stacks
from .sampling import REGIONS, Sampling, check_interval, recording_folder
from .stacks import Profiling


class Recorder:
    """Handle of a block that is recorded; ``recording`` is there once the block has ended."""

    def __init__(self) -> None:
        self._recording: Recording | None = None

    @property
    def recording(self) -> Recording:
        if self._recording is None:
            raise NoDataError("the recording is complete when the `with` block has ended; ask for it after the block")
        return self._recording


@names_keywords
@contextmanager
def record(
    output: str | os.PathLike[str] | None = None,
    *,
    meters: Sequence[str] | None = (),
    interval_s: float | None = None,
    profiling: Profiling | None = None,
    overwrite: bool = False,
) -> Iterator[Recorder]:
    """Meter the block and record the regions in it; ``recorder.recording`` is there once the block has ended.

    ``output`` keeps it as a new ``*.watt`` folder; with ``overwrite`` in the place of an earlier recording.
    ``meters`` are names (``name`` or ``name:root``), by default all that work here; in a parallel job only the first
    rank of a node samples. ``interval_s`` is the time between readings, by default as sensors update. Recordings may
    stand inside one another.
    ``profiling`` records the functions that run, too (:func:`.profile.profile`).
    """
    check_interval(interval_s)
    rank = rank_of()
    with ExitStack() as stack:
        place = Path(output) if output is not None else stack.enter_context(temporary_folder()) / "recording.watt"
        if overwrite and output is not None:
            archive.remove(place)
        elif place.exists():
            raise OutputError(f"{place} exists already; choose another name, or record(…, overwrite=True)")
        folder = recording_folder(place)
        host = os.uname().nodename
        about = {"command": sys.argv, "host": host, "clock": clocks.stamp(), **baselines.division(host)}
        sampled = ranks.samples(rank)
        about |= {"rank": {**rank.as_dict(), "samples": sampled}} if rank else {}
        about |= {"profile": profiling.as_dict()} if profiling else {}
        shares = "" if rank else "family"  # ranks share their node
        sampling = Sampling(folder, meters if sampled else None, interval_s, about=about, shares=shares)
        recorder = Recorder()
        try:
            sampling.start()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # we made it just now, and there is nothing in it
            raise
        regions.start(str(folder / REGIONS))
        name = Path((sys.argv or [""])[0]).name
        sampling.tell({"start": monotonic_ns(), "pid": os.getpid(), "name": name, "running": True})
        try:
            with stacks.recorded(profiling, str((folder / REGIONS).absolute())):
                yield recorder
        finally:
            sampling.tell({"end": monotonic_ns()})
            _pass_on(regions.stop(), folder / REGIONS)
            recorder._recording = sampling.stop()
            if output is not None:
                archive.fill(recorder.recording, folder)
                sampling.clean()


def _pass_on(outer: str | None, inner: Path) -> None:
    """A recording around this one sees its regions too."""
    if outer is not None:
        for path in inner.iterdir():
            with suppress(OSError):
                shutil.copy(path, outer)
