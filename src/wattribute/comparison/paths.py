"""Paths of runs: expand patterns and folders, give each run a short name and its metadata."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from ..errors import NotFoundError, OptionError
from ..files import nonempty_path

PathLike = Union[str, "os.PathLike[str]"]
Metadata = Mapping[str, Mapping[str, Any]] | Callable[[Path], Mapping[str, Any]] | str
ARCHIVE = ".watt"
_ANCHOR_NAMES = ("traces", "trace")  # names that every archive has and that tell no run from another


def expand(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Paths as they are; a pattern becomes what it matches and a folder of recordings what is in it, sorted."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files: list[Path] = []
    for one in given:
        name = nonempty_path(os.fspath(one))
        matches = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
        if not matches and glob.has_magic(name):
            raise NotFoundError(f"{name}: no file or folder matches this pattern")
        files.extend(member for match in matches or [name] for member in members(Path(match)))
    if not files:
        raise NotFoundError("no paths were given; an ensemble needs at least one run")
    return files


def members(path: Path) -> list[Path]:
    """The recordings and tables of runs in a folder that is none itself (an experiment), also broken ones; else the
    path."""
    from ..readers import is_known

    if not path.is_dir() or path.suffix == ARCHIVE:
        return [path]
    try:
        children = sorted(path.iterdir())
    except OSError:  # the reader says it better
        return [path]
    inside = [c for c in children if c.suffix == ARCHIVE or (c.suffix.lower() == ".csv" and is_known(c, runs=True))]
    return inside if any(c.suffix == ARCHIVE for c in inside) or (inside and not is_known(path)) else [path]


def names(paths: Sequence[Path]) -> list[str]:
    """A short name per path, with as many folders in front as it takes to tell them apart."""
    parts = [(*path.absolute().parts[1:-1], path.stem) for path in paths]
    parts = [names[:-1] if names[-1] in _ANCHOR_NAMES and len(names) > 1 else names for names in parts]
    names = [own[-1] for own in parts]
    for depth in range(2, max(map(len, parts)) + 1):
        owners: dict[str, set[tuple[str, ...]]] = {}
        for name, own in zip(names, parts, strict=True):
            owners.setdefault(name, set()).add(own)
        names = [
            "/".join(own[-depth:]) if len(owners[name]) > 1 else name for name, own in zip(names, parts, strict=True)
        ]
    seen: dict[str, int] = {}
    for at, name in enumerate(names):  # the same path twice
        seen[name] = seen.get(name, 0) + 1
        names[at] = name if seen[name] == 1 else f"{name} #{seen[name]}"
    return names


def about(path: Path, name: str, metadata: Metadata | None) -> Mapping[str, Any]:
    """The metadata of one run."""
    if metadata is None:
        return {}
    if isinstance(metadata, str):
        try:
            match = re.search(metadata, str(path))
        except re.error as error:
            raise OptionError(f"metadata {metadata!r} is not a regular expression: {error}") from error
        return {} if match is None else {key: _number(value) for key, value in match.groupdict().items()}
    if callable(metadata):
        return metadata(path)
    return metadata.get(name, metadata.get(str(path), {}))


def _number(text: str | None) -> Any:
    """Digits in a path are numbers."""
    for kind in (int, float):
        try:
            return kind(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return text
