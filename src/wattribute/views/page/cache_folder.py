"""The cache folder of a recording's tiles, and the check that they still fit it.

Beside the archive (``trace.tiles/``), or in the user's cache folder when that place is read-only. The fingerprint is
over the names, sizes and times of the recording's files and the options: when it changes, the tiles are made again.
Tiles hold what the recording holds, so they can be read by those who can read the recording, and by no others.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import NotFoundError
from ...files import user_folder

VERSION = 13  # of the layout of tiles; those of another version are made again


def root(path: Path) -> Path:
    """The recording's own file or folder: an OTF2 anchor stands for the folder it lies in."""
    path = Path(os.path.abspath(path))
    return path.parent if path.suffix == ".otf2" and path.is_file() else path


def newest(path: Path) -> float:
    """When the recording was last changed, in seconds since 1970; 0 when it is not there."""
    top = root(path)
    try:
        times = [top.stat().st_mtime_ns] if top.is_file() else [time for _, _, time in _walk(top)]
    except OSError:
        return 0.0
    return max(times, default=0) / 1e9


def fingerprint(path: Path, options: Mapping[str, Any]) -> str:
    """A hash of what the tiles depend on; raises NotFoundError when the recording is gone."""
    top = root(path)
    try:
        entries = _stamps(top)
    except OSError as error:
        raise NotFoundError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from error
    entries += [stamp for log in _logs(options) for stamp in _stamps(Path(log))]
    description = json.dumps([VERSION, entries, {name: repr(value) for name, value in sorted(options.items())}])
    topology = options.get("topology")
    mapped = Path(topology).read_bytes() if isinstance(topology, str) and Path(topology).is_file() else b""
    return hashlib.sha256(description.encode("utf-8", "surrogateescape") + mapped).hexdigest()


def _logs(options: Mapping[str, Any]) -> list[str]:
    """The power logs that are joined to it and can change like the recording itself."""
    given = options.get("signals") or ()
    given = [given] if isinstance(given, str | os.PathLike) else given
    return [os.fspath(log) for log in given if isinstance(log, str | os.PathLike) and os.path.exists(log)]


def _stamps(top: Path) -> list[tuple[str, int, int]]:
    return [(str(top), top.stat().st_size, top.stat().st_mtime_ns)] if top.is_file() else _walk(top)


def _walk(top: Path) -> list[tuple[str, int, int]]:
    out = []
    top.stat()
    for folder, folders, files in os.walk(top):
        folders.sort()
        below = os.path.relpath(folder, top)
        for name in sorted(files):
            stat = os.stat(os.path.join(folder, name))
            out.append((os.path.normpath(f"{below}/{name}"), stat.st_size, stat.st_mtime_ns))
    return out


def folder(path: Path) -> Path | None:
    """The folder for the tiles of a recording; its parent exists and can be written to. None: there is no such place.

    One for all options, made again when they change: a server that has the old one open keeps reading it.
    """
    top = root(path)
    if _writable(top.parent) and _writable(top):
        return top.with_name(f"{top.name}.tiles")
    cache = user_folder("CACHE", "tiles")
    named = hashlib.sha256(str(top).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return cache / f"{top.name}-{named}"


@dataclass(frozen=True)
class Permissions:
    """Who may read tiles: the modes of the folder and its files, and the group (None: the user's own)."""

    folder: int = 0o700
    files: int = 0o600
    group: int | None = None

    def apply(self, folder: Path) -> None:
        """Give a folder of tiles these modes; where the group cannot be given, nothing is opened to a group."""
        modes = {folder: self.folder, **dict.fromkeys(folder.iterdir(), self.files)}
        for path, mode in modes.items():
            if self.group is not None and path.stat().st_gid != self.group:
                try:
                    os.chown(path, -1, self.group)
                except OSError:
                    mode &= ~0o070
            path.chmod(mode)


def permissions(path: Path, options: Mapping[str, Any], tiles: Path) -> Permissions:
    """Those of the recording for tiles beside it; in the cache, where no other folder protects them, the user's own."""
    top = root(path)
    if tiles.parent != top.parent:
        return Permissions()
    files = [top] if top.is_file() else [Path(folder, name) for folder, _, names in os.walk(top) for name in names]
    read = 0o444
    for file in [*files, *(Path(log) for log in _logs(options) if os.path.isfile(log))]:
        read &= file.stat().st_mode
    inside = top.stat().st_mode & 0o777 if top.is_dir() else read | read >> 2
    return Permissions(inside | 0o700, read | 0o600, top.stat().st_gid)


def _writable(path: Path) -> bool:
    """Whether we may put something here. Root may anywhere, but a folder marked read-only is meant to stay so."""
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & 0o222)
