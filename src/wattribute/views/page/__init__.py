"""The interactive page: lanes, power, tables and flame graphs of one recording in a browser.

``view`` serves it from this machine; ``write_page`` puts it into one self-contained HTML file. From the bottom up:
``lanes`` (one lane on disk) → ``energy`` (curves of attribution) → ``tiles`` (the folder of a recording) → ``session``
(answers) → ``server`` | ``selfcontained``; ``static/`` is the page itself, plain ES modules on canvas.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...model import Recording


class Page:
    """A page being served; ``url`` opens it, ``close`` ends it. A context manager."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.url
        self._thread = threading.Thread(target=server.serve_forever, name="wattribute-page", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until the server ends, or Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _session(source: Any, compare: Any, progress: Any, options: dict[str, Any]) -> Any:
    from ...model import Recording
    from .session import Session

    def given(what: Any) -> Any:
        return what if what is None or isinstance(what, Recording) else Path(what)

    return Session(given(source), options, given(compare), progress)


def view(
    source: str | os.PathLike[str] | Recording,
    *,
    compare: str | os.PathLike[str] | Recording | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Page:
    """Serve the page of a recording; ``options`` are those of ``attribute``."""
    from .server import Server

    session = _session(source, compare, progress, options)
    try:
        return Page(Server(session, host, port))
    except BaseException:
        session.close()
        raise


def write_page(
    source: str | os.PathLike[str] | Recording,
    path: str | os.PathLike[str],
    *,
    compare: str | os.PathLike[str] | Recording | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> None:
    """Write the page of a recording to one HTML file that needs nothing else."""
    from . import selfcontained

    session = _session(source, compare, progress, options)
    try:
        selfcontained.write(session, Path(path))
    finally:
        session.close()
