"""``wattribute view``: the interactive page of a recording, served on this machine or written to one HTML file."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .options import with_selection
from .reading import progress_bar

# Typer reads these at run time, on Python 3.10 too
MaybePath = Optional[Path]  # noqa: UP045
MaybeText = Optional[str]  # noqa: UP045


@with_selection
def command(
    path: Annotated[Path, typer.Argument(help="A trace, archive or recording, also one still being made.")],
    selection: dict[str, Any],
    compare: Annotated[MaybePath, typer.Option(help="A second recording, shown side by side.")] = None,
    html: Annotated[MaybePath, typer.Option(help="Write one self-contained file instead of serving.")] = None,
    zone: Annotated[MaybeText, typer.Option(help="Where the electricity comes from, for grams of CO2e.")] = None,
    intensity: Annotated[MaybeText, typer.Option(help="g CO2e per kWh, a table, or a live source.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to serve on; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(help="The address to serve on: others may let others in.")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    from ..views.page import view, write_page

    selection |= {"zone": zone, "intensity": intensity}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with progress_bar("making tiles") as progress:
        if html is not None:
            write_page(path, html, compare=compare, progress=progress, **selection)
            print(f"wrote {html}")
            return
        page = view(path, compare=compare, host=host, port=port, progress=progress, **selection)
    with page, contextlib.suppress(KeyboardInterrupt):
        print(f"{page.url}\nCtrl-C ends it.", flush=True)
        if browser and _has_display():
            import webbrowser

            webbrowser.open(page.url)
        page.wait()


def _has_display() -> bool:
    """Without one, webbrowser would start a text browser in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
