"""Requests that could not be sent yet, on disk: in their order, private, bounded, and picked up by the next run.

::

    ~/.local/state/wattribute/push/<server>-<hash>/<when>-<pid>/lock, 00000001, 00000002 …

Every pushing process has a folder of its own and holds the lock in it; folders whose owner is gone are taken over by
whoever pushes to the same server next. A file is a line of JSON and the compressed body: no secrets.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from ..files import write_file
from ..outputs.timeseries.target import Request, Target

MOST_BYTES = 256 << 20  # of one server
_LOCK = "lock"


def root() -> Path:
    """Folder of the spools on this machine."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base, "wattribute", "push")


def place(target: Target, base: Path | None = None) -> Path:
    """The folder of one server."""
    identity = json.dumps([target.name, sorted(target.options.items())])
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{target.protocol}-{target.host}-{target.port}")[:80]
    return (base or root()) / f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


class Spool:
    """The requests for one server, oldest first: those that earlier runs left, then ours."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self._most = folder, most_bytes
        self.failure = ""  # why nothing can be kept
        self._locks: dict[Path, int] = {}
        self._own: Path | None = None
        self._count = 0
        self._bytes = 0
        self._waiting: list[Path] = []
        with contextlib.suppress(OSError):
            for left in sorted(path for path in folder.iterdir() if path.is_dir()):
                self._adopt(left)
            self._bytes = sum(path.stat().st_size for path in folder.glob("*/*"))

    def __len__(self) -> int:
        return len(self._waiting)

    def _adopt(self, left: Path) -> None:
        """Take over a folder whose owner is gone."""
        with contextlib.suppress(OSError):
            handle = os.open(left / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return
            self._locks[left] = handle
            self._waiting += sorted(path for path in left.iterdir() if path.name.isdigit())

    def put(self, request: Request) -> bool:
        """Keep a request; False (and ``failure``) when there is no room or no disk."""
        head = json.dumps({"path": request.path, "type": request.type, "points": request.points}).encode()
        content = head + b"\n" + request.body
        if self._bytes + len(content) > self._most:
            self.failure = f"{self.folder} is full ({self._most >> 20} MB)"
            return False
        try:
            path = self._mine() / f"{self._count:08d}"
            write_file(path, content, 0o600)
        except OSError as error:
            self.failure = f"{self.folder}: {error.strerror or error}"
            return False
        self._count += 1
        self._bytes += len(content)
        self._waiting.append(path)
        return True

    def _mine(self) -> Path:
        if self._own is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            own = self.folder / f"{time.time_ns()}-{os.getpid()}"
            own.mkdir(mode=0o700)
            handle = os.open(own / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._locks[own], self._own = handle, own
        return self._own

    def requests(self) -> Iterator[tuple[Path, Request]]:
        """Iterate over the waiting requests in order; new ones may be put meanwhile."""
        for path in list(self._waiting):
            try:
                head, _, body = path.read_bytes().partition(b"\n")
                header = json.loads(head)
                request = Request(str(header["path"]), str(header["type"]), body, int(header["points"]))
            except (OSError, ValueError, KeyError, TypeError):  # cut by a full disk, or gone
                self.remove(path)
                continue
            yield path, request

    def remove(self, path: Path) -> None:
        """Remove a request that was sent or is no longer wanted."""
        with contextlib.suppress(OSError):
            self._bytes -= path.stat().st_size
            path.unlink()
        with contextlib.suppress(ValueError):
            self._waiting.remove(path)

    def points(self) -> int:
        return sum(request.points for _, request in self.requests())

    def close(self) -> None:
        """Leave what waits to the next run, and nothing else."""
        for folder, handle in self._locks.items():
            with contextlib.suppress(OSError):
                if not any(path.name.isdigit() for path in folder.iterdir()):
                    for path in folder.iterdir():
                        path.unlink()
                    folder.rmdir()
            os.close(handle)
        self._locks = {}
        with contextlib.suppress(OSError):
            self.folder.rmdir()
