"""A command → its recording on disk and its summary: ``wattribute.run`` and the verb ``run``.

``recorders.command`` runs and records; here the recording is saved into its folder, summarised, and the journal
removed. Whatever fails after the child ended never hides the child's exit code: it comes back as ``trouble``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, OutputError, WattributeError, names_keywords
from ..journal.ranks import Rank, rank_of
from ..recorders import clocks, ranks
from ..recorders.command import ENDING, CommandEnd, CommandRecording, record, signals_held
from .followers import RunFollower, followed

if TYPE_CHECKING:
    from ..model import Recording, Summary
    from ..model.status import Status
    from ..recorders.container import Container, ContainerRun
    from ..recorders.stacks import Profiling
    from .score import ScoreFile
    from .status import StatusObservers

SUMMARY = "summary.json"
RESULTS = "results"  # what was copied out of a container


@dataclass(frozen=True)
class RunResult:
    """One run: how it ended, what it cost, where it lies."""

    exit_code: int
    folder: Path
    ended: CommandEnd
    summary: Summary | None
    recording: Recording | None  # None: there was nothing to make one of
    trouble: tuple[str, ...] = ()  # what went wrong outside the child, a line each
    metrics: Mapping[str, Any] | None = None  # as in metrics.json
    saved: bool = True  # all of it; otherwise ``trouble`` says what is left
    late_signal: int = 0  # that asked for an end when the command had ended already: no other run is wanted


@names_keywords
def run(
    command: Sequence[str],
    output: str | os.PathLike[str] | None = None,
    *,
    meters: Sequence[str] = (),
    interval_s: float | None = None,
    scope: str = "machine",
    zone: str | None = None,
    intensity: float | str | None = None,
    observers: Sequence[Callable[[Status], None]] = (),
    profiling: Profiling | None = None,
    metadata: Mapping[str, Any] | None = None,
    container: Container | None = None,
    score: str | None = None,
    counts: Sequence[str] = (),
    followers: Sequence[RunFollower] = (),
) -> RunResult:
    """Run a command (a list of words) under the meters; its recording is saved as a new folder ``output`` (``*.watt``).

    ``meters`` and ``interval_s`` are those of :func:`wattribute.record`, ``zone`` and ``intensity`` those of
    :func:`wattribute.emissions`; ``scope`` is "machine", or "process": the command's share.
    With ``profiling`` the Python programs among what runs record their stacks, and the recording has their functions.
    With ``container`` the command (or, without one, what its image says) runs in that. ``score``, "FILE:KEY", takes a
    number from a file that the program wrote, and ``counts``, "UNIT=FILE:KEY" each, how many of a unit of work it did.
    ``metadata`` is kept with the recording; ``observers`` are called with a status every second; ``followers`` read the
    journal and send it elsewhere.
    """
    if isinstance(command, str):
        raise OptionError(f"run takes a list of words, as subprocess does: run({shlex.split(command)!r})")
    if zone is not None or intensity is not None or "WATTRIBUTE_ZONE" in os.environ:
        from ..carbon import check

        check(zone, intensity)  # refuse a wrong name before the command runs
    sought = None if score is None else _sought(score, container)
    counted = [_sought(text, container, "count") for text in counts]
    rank = rank_of()
    named = meters if ranks.samples(rank) else None  # None: another rank of this node reads the meters
    with _place(output, "" if rank is None else f"-rank{rank.rank}") as (folder, notes):
        boxed = None if container is None else _boxed(container, profiling, folder)
        watching = _watching(observers, zone, intensity)
        about = _metadata(command, zone, intensity, rank, profiling, boxed, named is not None) | dict(metadata or {})
        with signals_held() as late, boxed or contextlib.nullcontext():
            follow = followed(followers if named is not None else (), folder, notes)
            with ranks.attendance(rank, named is not None) as others_done, follow:
                recorded = record(
                    command, folder, meters=named, interval_s=interval_s, observers=watching, scope=scope,
                    metadata=about, until=others_done, profiling=profiling, child=boxed.run if boxed else None,
                    claimed=output is None,
                )  # fmt: skip
            notes += [line for one in watching for line in one.trouble]
            more, amounts = _collected(boxed, sought, counted, folder, notes)
            done = finished(recorded, folder, notes, zone, intensity, more, amounts)
        return replace(done, late_signal=max(late & ENDING, default=0))


def _watching(
    observers: Sequence[Callable[[Status], None]], zone: str | None, intensity: float | str | None
) -> list[StatusObservers]:
    if not observers:
        return []
    from .status import StatusObservers

    watching = StatusObservers(observers, zone, intensity)
    watching.begin(time.monotonic_ns())
    return [watching]


def _metadata(
    command: Sequence[str],
    zone: str | None,
    intensity: float | str | None,
    rank: Rank | None,
    profiling: Profiling | None,
    boxed: ContainerRun | None,
    samples: bool,
) -> dict[str, Any]:
    """Metadata of a run: zone, clock, name, rank and container."""
    zone = zone or os.environ.get("WATTRIBUTE_ZONE")
    metadata: dict[str, Any] = {"zone": zone} if zone else {}
    if intensity is not None:
        metadata["intensity"] = intensity
    metadata["clock"] = clocks.stamp()  # by which ``merge`` joins the recordings of a job
    if profiling is not None and command[:1] == [sys.executable]:
        metadata["name"] = shlex.join(command[1:])  # the program: which Python ran it stands in "command"
    if rank is not None:
        metadata["rank"] = {**rank.as_dict(), "samples": samples}
    if boxed is not None:
        metadata |= {"container": boxed.about(), "name": shlex.join([boxed.spec.image, *command])}
    return metadata


def _boxed(container: Container, profiling: Profiling | None, folder: Path) -> ContainerRun:
    """A container made ready, before signals are held: a pull takes long and may be interrupted."""
    from ..recorders.container import LOG, prepare

    if profiling is not None:
        raise OptionError("--profile sees no Python inside containers; profile there: wattribute profile in the image")
    return prepare(container, folder / LOG)


def _sought(text: str, container: Container | None, what: str = "score") -> ScoreFile:
    from .score import ScoreFile

    sought = ScoreFile.of(text) if what == "score" else ScoreFile.of_count(text)
    if container is not None and not container.results and not sought.path.is_absolute():
        raise OptionError(f"--{what} {text}: name the container's file from its root, or its folder with --results")
    return sought


def _collected(
    boxed: ContainerRun | None,
    sought: ScoreFile | None,
    counted: Sequence[ScoreFile],
    folder: Path,
    trouble: list[str],
) -> tuple[dict[str, Any], dict[str, float]]:
    """What the program left behind: results copied out of a container and a score, for the metadata; and counts."""
    more: dict[str, Any] = {}
    amounts: dict[str, float] = {}
    kept = folder / RESULTS
    if boxed is not None and not boxed.started:
        return more, amounts
    if boxed is not None and boxed.spec.results:
        more["results"] = [str(path.relative_to(folder)) for path in _copied(boxed, boxed.spec.results, kept, trouble)]
    for one in (*counted, *([] if sought is None else [sought])):
        path = one.path if boxed is None else _out_of(boxed, one.path, kept, trouble)
        try:
            if one.unit:
                amounts[one.unit] = amounts.get(one.unit, 0.0) + one.read_count(path)
            else:
                more["score"] = {"value": one.read(path), "file": str(one.path), "key": one.key}
        except WattributeError as error:
            trouble.append(str(error))
    if boxed is not None:
        boxed.remove()
        trouble += boxed.trouble
    return more, amounts


def _out_of(boxed: ContainerRun, path: Path, kept: Path, trouble: list[str]) -> Path:
    """Where a file of the container lies now: among its results, or copied out for itself."""
    if not path.is_absolute():
        return kept / path
    if boxed.spec.results and path.is_relative_to(boxed.spec.results):
        return kept / path.relative_to(boxed.spec.results)
    _copied(boxed, str(path), kept, trouble)
    return kept / path.name


def _copied(boxed: ContainerRun, path: str, target: Path, trouble: list[str]) -> list[Path]:
    try:
        return boxed.copy_out(path, target)
    except WattributeError as error:
        trouble.append(str(error))
        return []


@contextlib.contextmanager
def _place(output: str | os.PathLike[str] | None, suffix: str) -> Iterator[tuple[Path, list[str]]]:
    """Create the output folder (removed again if it stays empty); also yield a list for notices to the user."""
    if output is not None:
        path = Path(output)
        yield path.with_name(path.stem + suffix + path.suffix) if suffix else path, []
        return
    place, notes = Path(), []
    if not os.access(".", os.W_OK):
        import tempfile

        place = Path(tempfile.gettempdir())
        notes = [f"this folder cannot be written: the recording goes to {place}"]
    path = _claim(place / f"wattribute-{time.strftime('%Y%m%d-%H%M%S')}{suffix}")
    try:
        yield path, notes
    except BaseException:
        with contextlib.suppress(OSError):
            path.rmdir()
        raise


def _claim(stem: Path) -> Path:
    """A new folder; made at once, because another run may look for a name in the same second."""
    count = 0
    while True:
        count += 1
        path = stem.with_name(f"{stem.name}.watt" if count == 1 else f"{stem.name}-{count}.watt")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise OutputError(f"{path}: cannot be made: {error.strerror}") from error
        return path


def finished(
    recorded: CommandRecording,
    folder: Path,
    notes: Sequence[str],
    zone: str | None,
    intensity: float | str | None,
    more: Mapping[str, Any] | None = None,
    amounts: Mapping[str, float] | None = None,
) -> RunResult:
    """Make, summarise and save the recording; what goes wrong here is reported beside the exit code, never instead."""
    from . import metrics

    ended, trouble = recorded.ended, list(notes)
    if ended.error:
        trouble.append(ended.error)
    if ended.error and ended.end_ns == ended.start_ns:  # it never ran: there is nothing to keep
        recorded.sampling.clean()
        with contextlib.suppress(OSError):  # the log of a container may be in it
            folder.rmdir()
        return RunResult(ended.exit_code, folder, ended, None, None, tuple(trouble))
    if recorded.sampling.failure:
        trouble.append(f"{folder}: the journal is not complete ({recorded.sampling.failure})")
    try:
        recording, summary = _summarised(recorded, zone, intensity, more or {}, amounts or {})
    except WattributeError as error:
        gone = f"{folder} was removed while the command ran: nothing is left of its recording"
        failure = str(error) if folder.exists() else gone
        return RunResult(ended.exit_code, folder, ended, None, None, (*trouble, failure), saved=False)
    measures = metrics.metrics(recording, summary)
    saved = False
    try:
        _save(recording, summary, measures, folder)
        recorded.sampling.clean()
        saved = True
    except OutputError as error:
        trouble.append(str(error))
    except OSError as error:
        trouble.append(f"{folder}: the summary could not be written ({error.strerror})")
    return RunResult(ended.exit_code, folder, ended, summary, recording, tuple(trouble), measures, saved)


def _summarised(
    recorded: CommandRecording,
    zone: str | None,
    intensity: float | str | None,
    more: Mapping[str, Any],
    amounts: Mapping[str, float],
) -> tuple[Recording, Summary]:
    from ..model.counts import with_counts
    from .summary import summarise

    recording = recorded.recording()
    recording = with_counts(replace(recording, metadata={**recording.metadata, **more}), amounts)
    return recording, summarise(recording, zone, intensity)


def _save(recording: Recording, summary: Summary, measures: Mapping[str, Any], folder: Path) -> None:
    from .. import archive
    from ..model.stored import give_back
    from . import metrics
    from . import result_series as series

    give_back(recording)
    archive.fill(recording, folder)
    give_back(recording)
    (folder / SUMMARY).write_text(json.dumps(summary.as_dict(), indent=1), encoding="utf-8")
    metrics.write(measures, folder)
    series.write(recording, folder)


def numbered(output: str | os.PathLike[str] | None, repeat: int, of: int) -> Path | None:
    """The folder of one of several runs: ``out.watt`` → ``out-2.watt``."""
    if of < 1:
        raise OptionError(f"--repeat {of}: choose at least 1")
    if output is None or of == 1:
        return None if output is None else Path(output)
    path = Path(output)
    return path.with_name(f"{path.stem}-{repeat}{path.suffix or '.watt'}")
