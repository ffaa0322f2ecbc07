"""Any recording → our own archive, its spans written here or by the workers of a cluster."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from ..archive import save
from ..errors import OptionError
from ..model import Recording
from ..reading import read

ENGINES = ("local", "dask")


def convert(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    engine: str = "local",
    threads: int | None = None,
    progress: Any = None,
    **selection: Any,
) -> Recording:
    """Read ``path`` and write it to the folder ``out``; keyword arguments are those of :func:`wattribute.read`.

    ``engine`` is "local", or "dask" with the address of a scheduler behind a colon: workers then decode and write the
    spans, each location once; ``path`` and ``out`` have to be on a file system that all of them see.
    """
    name, _, where = engine.partition(":")
    if name not in ENGINES:
        raise OptionError.unknown("engine", name, ENGINES)
    if name == "local":
        recording = read(path, threads=threads, progress=progress, **selection)
        save(recording, out, threads or 2, progress)
        return recording
    from .cluster import session
    from .dask import reach, write_spans

    with session():
        if where:
            reach(where, threads)
        recording = read(os.path.abspath(path), threads=threads, progress=progress, **selection)
        save(recording, os.path.abspath(out), threads or 2, progress, partial(write_spans, where, threads))
    return recording
