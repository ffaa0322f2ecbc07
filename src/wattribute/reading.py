"""``read``: a path, its power logs, what to select → Recording. The only ``read`` of the package.

A file may hold many runs, one per row (codecarbon): ``read`` gives them on one timeline, ``read_runs`` one by one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from . import archive
from .errors import NotFoundError, OptionError, WattributeError, names_keywords
from .files import nonempty_path
from .model import ReadOptions, Recording
from .model.question import make
from .model.select import select_metrics
from .plugins import Selection
from .readers import find_reader

Source = Recording | str | os.PathLike[str]


def read(
    path: str | os.PathLike[str], format: str | None = None, *, metric: str | None = None, **given: Any
) -> Recording:
    """Read the trace, archive or profile at ``path``; ``format`` names a reader, otherwise the content decides.

    ``signals`` are power logs (or other recordings) whose readings are joined to it; ``offset`` seconds are added to
    their times. ``metric`` is a regular expression: only metrics whose name matches are read. The other keyword
    arguments are the fields of :class:`wattribute.model.ReadOptions`.
    """
    options = make(ReadOptions, given | {"format": format})
    with _readable(path):
        recording = find_reader(Path(path), options.format).read(Path(path), _selection(options, metric))
    return _with_logs(recording, options, metric)


def read_runs(path: str | os.PathLike[str], **given: Any) -> tuple[list[Recording], list[str]]:
    """Read every run in a file or folder as a recording of its own; also what had to be left out, a line each."""
    options = make(ReadOptions, given)
    with _readable(path):
        reader, left_out = find_reader(Path(path), options.format), []
        if hasattr(reader, "runs"):
            recordings, left_out = reader.runs(Path(path), _selection(options))
        else:
            recordings = [reader.read(Path(path), _selection(options))]
    return [_with_logs(recording, options) for recording in recordings], left_out


def as_recording(source: Source, options: ReadOptions | None = None) -> Recording:
    """Return the recording of a source: a path is read, the power logs are joined to a Recording."""
    options = options or ReadOptions()
    if not isinstance(source, Recording):
        return read(source, **{one.name: getattr(options, one.name) for one in fields(options)})
    for name in ("format", "metric_kinds"):
        if getattr(options, name):
            raise OptionError(f"{name} decides how a file is read; give it to wattribute.read, or give a path here")
    return _with_logs(source, options)


def select(recording: Recording, metric: str | None) -> Recording:
    """Keep only the signals whose name matches."""
    return select_metrics(recording, metric)


def _selection(options: ReadOptions, metric: str | None = None) -> Selection:
    return Selection(metric, options.metric_kinds, options.threads, options.progress, options.survey)


def _with_logs(recording: Recording, options: ReadOptions, metric: str | None = None) -> Recording:
    """The recording with the readings of its power logs on its own timeline."""
    if options.offset is not None and not options.logs:
        raise OptionError("an offset is that of a log's times; name the log with signals=FILE (--signals FILE)")
    for log in options.logs:
        from .alignment.power_logs import join  # most recordings are read without logs

        is_recording = isinstance(log, Recording)
        name = str(log.metadata.get("name", "")) if is_recording else os.fspath(log)
        other = log if is_recording else read(log, metric=metric, metric_kinds=options.metric_kinds)
        recording = join(recording, other, options.offset, name or "the log")
    return recording


@contextlib.contextmanager
def _readable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn a refusal of the operating system into one of our errors."""
    nonempty_path(os.fspath(path))
    try:
        if not Path(path).exists():
            raise NotFoundError(f"{path}: no such file or folder")
        if not Path(path).is_file() and not Path(path).is_dir():  # a pipe can be looked at once only
            raise NotFoundError(f"{path}: not a regular file; write what comes out of it to one first")
        yield
    except PermissionError as error:
        if isinstance(error, WattributeError):
            raise
        raise NotFoundError(f"{error.filename or path}: cannot be read: {error.strerror}") from error


@names_keywords
def save(recording: Source, path: str | os.PathLike[str], threads: int = 2, progress: Any = None) -> None:
    """Write a recording, or what another path holds, to the new folder ``path`` (``*.watt``).

    A folder that exists is an error. ``threads`` is how many write; ``progress`` is called with (done, whole).
    """
    archive.save(as_recording(recording), path, threads, progress)


@names_keywords
def merge(recordings: Sequence[Source], align: str = "clock") -> Recording:
    """Merge recordings, each a Recording or a path, into one; ``align="start"`` lays their beginnings on each other."""
    from .alignment.merge import merge as merged

    if isinstance(recordings, str | os.PathLike):
        raise OptionError("merge takes a list of recordings or paths, not one")
    return merged([as_recording(recording) for recording in recordings], align)
