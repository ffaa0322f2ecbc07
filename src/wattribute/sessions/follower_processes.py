"""Parent-side handles of the processes that follow a run: ``Push`` to a server, ``Serve`` scrapers.

::

    push = Push(target, headers)
    push.begin(folder)            # the journal may not be there yet
    …                             # the run
    push.end()
    for line in push.finish(): …  # what went wrong, in words

Both are :class:`~wattribute.sessions.followers.Following`. Light: a command waits for them.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import OptionError, OutputError
from ..journal.file import NAME
from ..outputs.timeseries.target import Target

PORT = 9401
WAIT_S = 15.0  # for the final output of a process; a server that hangs must not block a run
_BOOT = """
import json, os, sys
order = b""
left = int(os.read(0, 8))
while len(order) < left:
    order += os.read(0, left - len(order))
order = json.loads(order)
sys.path[:] = order.pop("path")
from importlib import import_module
import_module(order.pop("module")).main(order)
"""


class _Process:
    """Helper process that gets its order through standard input, which no other user can read."""

    def __init__(self, module: str, order: Mapping[str, Any], files: Sequence[int] = ()) -> None:
        # -I -S: no user site, no .pth files; the path is handed over. A session of its own: Ctrl-C is not for it.
        path = [str(Path(__file__).parents[3]), *(entry for entry in sys.path if entry)]
        encoded = json.dumps({**order, "module": f"{__package__}.{module}", "path": path}).encode()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            pass_fds=files,
        )  # fmt: skip
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"%8d" % len(encoded) + encoded)
            self._process.stdin.flush()

    def end(self) -> None:
        """Signal that the run is over."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"end")
            self._process.stdin.flush()

    def final_output(self) -> bytes:
        """Wait for the process and return its standard output."""
        try:
            return self._process.communicate(timeout=WAIT_S)[0]
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.communicate()[0]


class _Follower:
    """Base of followers: subclasses start the process, here it is ended."""

    _process: _Process | None = None

    def end(self) -> None:
        if self._process is not None:
            self._process.end()

    def finish(self) -> list[str]:
        process, self._process = self._process, None
        return [] if process is None else self._messages(process.final_output())

    def _messages(self, output: bytes) -> list[str]:
        return []


class Push(_Follower):
    """Sends a run's points to a server while it runs."""

    def __init__(self, target: Target, headers: Mapping[str, str], spool: Path | None = None) -> None:
        self.target, self._headers, self._spool = target, headers, spool
        self.report: dict[str, Any] = {}

    def begin(self, folder: Path, forget: bool = False) -> None:
        from .spool import place

        self._process = _Process(
            "pusher",
            {
                "journal": str((folder / NAME).absolute()),
                "forget": forget,
                "target": asdict(self.target),
                "headers": dict(self._headers),
                "spool": str(place(self.target, self._spool)),
            },
        )

    def _messages(self, output: bytes) -> list[str]:
        self.report = json.loads(output) if output else {}
        name, report = self.target.name, self.report
        if not report:
            return [f"{name}: pushing ended early; send the recording with: wattribute export X.watt --to …"]
        lines = []
        if report["kept"]:
            lines.append(
                f"{name}: {report['kept']:,} readings are not sent yet ({report['why']}); they are kept in "
                f"{report['spool']} and the next run with this --push sends them"
            )
        if report["refused"]:
            lines.append(f"{name}: {report['refused']:,} readings were refused ({report['why']})")
        if report["lost"]:
            lines.append(
                f"{name}: {report['lost']:,} readings could neither be sent ({report['why']}) nor kept "
                f"({report['failure']}); send the recording with: wattribute export X.watt --to …"
            )
        return lines


class Serve(_Follower):
    """Answers scrapers while something runs."""

    def __init__(self, address: str) -> None:
        self._listening = _listen(address)

    @property
    def url(self) -> str:
        host, port = self._listening.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"

    def begin(self, folder: Path, forget: bool = False) -> None:
        handle = self._listening.fileno()
        order = {"journal": str((folder / NAME).absolute()), "forget": forget, "socket": handle}
        self._process = _Process("endpoint", order, [handle])


def _listen(address: str) -> socket.socket:
    """A listening socket at ``[ADDR]:PORT`` or ``PORT``; this machine only unless an address is given."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise OptionError(f"--serve {address}: give a port, or an address and a port, e.g. :{PORT} or 0.0.0.0:{PORT}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family)
    except OSError as error:
        raise OutputError(f"--serve {address}: cannot listen there: {error.strerror or error}") from error
