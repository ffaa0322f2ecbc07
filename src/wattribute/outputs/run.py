"""A command → its recording on disk and its summary: ``wattribute.run`` and the verb ``run``.

``recorders.command`` runs and records; here the recording is saved into its folder, summarised, and the journal
removed. Whatever fails after the child ended never hides the child's exit code: it comes back as ``trouble``.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, OutputError, WattributeError
from ..recorders import clocks, ranks
from ..recorders.command import Ended, Recorded, record, signals_held

if TYPE_CHECKING:
    from ..model import Recording
    from ..recorders.stacks import Profiling

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Run:
    """One run: how it ended, what it cost, where it lies."""

    exit_code: int
    folder: Path
    ended: Ended
    summary: Mapping[str, Any] | None
    recording: Recording | None
    trouble: tuple[str, ...] = ()  # what went wrong outside the child, a line each


def run(
    command: Sequence[str],
    output: str | os.PathLike[str] | None = None,
    *,
    meters: Sequence[str] = (),
    interval_s: float | None = None,
    scope: str = "machine",
    zone: str | None = None,
    intensity: float | str | None = None,
    observers: Sequence[Callable[[dict[str, Any]], None]] = (),
    profiling: Profiling | None = None,
) -> Run:
    """Run a command under the meters; its recording is saved as a new folder ``output`` (``*.watt``).

    With ``profiling`` the Python programs among what runs record their stacks, and the recording has their functions.
    """
    with signals_held():
        return _run(command, output, meters, interval_s, scope, zone, intensity, observers, profiling)


def _run(
    command: Sequence[str],
    output: str | os.PathLike[str] | None,
    meters: Sequence[str],
    interval_s: float | None,
    scope: str,
    zone: str | None,
    intensity: float | str | None,
    observers: Sequence[Callable[[dict[str, Any]], None]],
    profiling: Profiling | None,
) -> Run:
    if zone is not None or intensity is not None or "WATTRIBUTE_ZONE" in os.environ:
        from ..carbon import check

        check(zone, intensity)  # a wrong name is to be said before the command runs
    rank = ranks.of()
    told: dict[str, Any] = {"zone": zone} if zone else {}
    told["clock"] = clocks.stamp()  # by which ``merge`` joins the recordings of a job
    if profiling is not None and command[:1] == [sys.executable]:
        told["name"] = shlex.join(command[1:])  # the program: which Python ran it stands in "command"
    if rank is not None:
        told["rank"] = rank.as_dict()
    named: Sequence[str] | None = meters
    if not ranks.samples(rank):
        named = None  # another rank of this node reads the meters
    folder, notes = _place(output, "" if rank is None else f"-rank{rank.rank}")
    with ranks.attendance(rank, named is not None) as others_done:
        recorded = record(command, folder, named, interval_s, observers, scope, told, others_done, profiling)
    trouble = [*notes, *([recorded.ended.error] if recorded.ended.error else [])]
    if recorded.sampling.failure:
        trouble.append(f"{folder}: the journal could not be written ({recorded.sampling.failure})")
    recording, summary = _finish(recorded, folder, zone, intensity, trouble)
    return Run(recorded.ended.exit_code, folder, recorded.ended, summary, recording, tuple(trouble))


def _place(output: str | os.PathLike[str] | None, suffix: str) -> tuple[Path, list[str]]:
    """The folder asked for, or a new name; in the folder for temporary files when this one may not be written."""
    if output is not None:
        path = Path(output)
        return path.with_name(path.stem + suffix + path.suffix) if suffix else path, []
    name = f"wattribute-{time.strftime('%Y%m%d-%H%M%S')}{suffix}"
    place, notes = Path(), []
    if not os.access(".", os.W_OK):
        import tempfile

        place = Path(tempfile.gettempdir())
        notes = [f"this folder cannot be written: the recording goes to {place}"]
    for count in range(1, 1000):
        path = place / (f"{name}.watt" if count == 1 else f"{name}-{count}.watt")
        if not path.exists():
            break
    return path, notes


def _finish(
    recorded: Recorded, folder: Path, zone: str | None, intensity: float | str | None, trouble: list[str]
) -> tuple[Recording | None, dict[str, Any] | None]:
    from .. import archive
    from .summary import summarise

    try:
        recording = recorded.recording()
        summary = summarise(recording, zone, intensity)
    except WattributeError as error:
        trouble.append(str(error))
        return None, None
    try:
        archive.fill(recording, folder)
        (folder / SUMMARY).write_text(json.dumps(summary, indent=1), encoding="utf-8")
        recorded.sampling.clean()
    except OutputError as error:
        trouble.append(str(error))
    except OSError as error:
        trouble.append(f"{folder}: the summary could not be written ({error.strerror})")
    return recording, summary


def numbered(output: str | os.PathLike[str] | None, repeat: int, of: int) -> Path | None:
    """The folder of one of several runs: ``out.watt`` → ``out-2.watt``."""
    if of < 1:
        raise OptionError(f"--repeat {of}: choose at least 1")
    if output is None or of == 1:
        return None if output is None else Path(output)
    path = Path(output)
    return path.with_name(f"{path.stem}-{repeat}{path.suffix or '.watt'}")
