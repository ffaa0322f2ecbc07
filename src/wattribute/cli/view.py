"""``wattribute view``: the interactive page of a recording, served on this machine or written to one HTML file."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer


def command(
    path: Annotated[Path, typer.Argument(help="A trace, archive or recording, also one still being made.")],
    compare: Annotated[Path | None, typer.Option(help="A second recording, shown side by side.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained file instead of serving.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to serve on; 0 takes a free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="The address to serve on; others than this machine's can then connect.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    from ..views.page import view, write_page

    if html is not None:
        write_page(path, html, compare=compare)
        print(f"wrote {html}")
        return
    with view(path, compare=compare, host=host, port=port) as page:
        print(f"{page.url}\nCtrl-C ends it.", flush=True)
        if browser and _has_display():
            import webbrowser

            webbrowser.open(page.url)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            page.wait()


def _has_display() -> bool:
    """Without one, webbrowser would start a text browser in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
