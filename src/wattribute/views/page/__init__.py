"""The interactive page: lanes, power, tables and flame graphs of one recording in a browser.

``view`` serves it from this machine; ``write_page`` puts it into one self-contained HTML file. From the bottom up:
``lanes`` (one lane on disk) → ``energy`` (curves of attribution) → ``block_sums`` (joules per block of time) →
``tiles`` (the folder of a recording) → ``session`` (answers) → ``server`` | ``selfcontained``; ``static/`` is the page
itself, plain ES modules on canvas.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...files import nonempty_path

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...model import Recording


class Page:
    """A page being served; ``url`` opens it, ``close`` ends it. A context manager."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.url
        self.warning: str = server.warning
        self._redirect: Path | None = None
        self._thread = threading.Thread(target=server.serve_forever, name="wattribute-page", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the server ends, or for Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def redirect_file(self) -> Path:
        """A file, readable by this user only, that leads a browser here.

        The address holds the token, and other users see what stands on a browser's command line.
        """
        if self._redirect is None:
            import tempfile

            folder = os.environ.get("XDG_RUNTIME_DIR")
            descriptor, path = tempfile.mkstemp(
                ".html", "wattribute-", folder if folder and Path(folder).is_dir() else None
            )
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(
                    f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={self.url}">\n'
                )
            self._redirect = Path(path)
        return self._redirect

    def close(self) -> None:
        if self._redirect:
            self._redirect.unlink(missing_ok=True)
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
        return what if what is None or isinstance(what, Recording) else Path(nonempty_path(os.fspath(what)))

    return Session(given(source), options, given(compare), progress)


def view(
    source: str | os.PathLike[str] | Recording,
    *,
    compare: str | os.PathLike[str] | Recording | None = None,
    address: str = "127.0.0.1",
    port: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Page:
    """Serve the page of ``source``, a Recording or a path, at an address and port (0: a free one).

    ``compare`` is a second one, shown beside it; ``progress`` is called with (done, whole) while tiles are made.
    ``options`` are those of ``attribute``.
    """
    from .server import PageServer

    session = _session(source, compare, progress, options)
    try:
        return Page(PageServer(session, address, port))
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
    """Write the page of ``source`` to one self-contained HTML file at ``path``; ``-`` is standard output.

    ``compare``, ``progress`` and ``options`` are those of :func:`view`.
    """
    from ...files import check_writable
    from . import selfcontained

    check_writable(path)
    session = _session(source, compare, progress, options)
    try:
        selfcontained.write(session, path)
    finally:
        session.close()
