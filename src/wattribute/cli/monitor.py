"""``wattribute monitor``: the machine's devices, live, without running anything."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer
from typer.core import TyperCommand

from ..errors import OptionError
from .flags import words
from .pushing import with_push

if TYPE_CHECKING:
    from ..views.page.live import LivePage

# Typer reads these at run time, on Python 3.10 too
MaybePath = Optional[Path]  # noqa: UP045
MaybeText = Optional[str]  # noqa: UP045
MaybeNumber = Optional[float]  # noqa: UP045
_ANYWHERE = "127.0.0.1:0"


class Command(TyperCommand):
    """``--web`` may stand alone: any free port of this machine."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        after = [*args[1:], "-"]
        alone = [arg == "--web" and after[at].startswith("-") for at, arg in enumerate(args)]
        given = [f"--web={_ANYWHERE}" if bare else arg for arg, bare in zip(args, alone, strict=True)]
        return super().parse_args(ctx, given)


@with_push
def command(
    followers: Any,
    interval: Annotated[
        MaybeNumber, typer.Option(help="Seconds between readings; default: as sensors update, shown every second.")
    ] = None,
    duration: Annotated[MaybeNumber, typer.Option(help="Seconds after which it ends by itself.")] = None,
    meters: Annotated[list[str], typer.Option(help="name or name:root, repeatable; default: all that work.")] = [],  # noqa: B006
    zone: Annotated[MaybeText, typer.Option(help="Where the electricity comes from; see: wattribute zones.")] = None,
    intensity: Annotated[MaybeText, typer.Option(help="g CO2e per kWh, a table, or a live source.")] = None,
    web: Annotated[
        MaybeText, typer.Option(metavar="[ADDR:PORT]", help="Also a page with live charts; alone: a free port here.")
    ] = None,
    record: Annotated[MaybePath, typer.Option(metavar="X.watt", help="Keep it as a recording.")] = None,
    format: Annotated[
        Literal["table", "json"], typer.Option(help="table: a screen, or lines without a terminal; json: lines.")
    ] = "table",
) -> None:
    from ..outputs.monitor import monitor

    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(_ended_by_signals())
        page = None if web is None else stack.enter_context(_page(web))
        observers: list[Callable[[dict[str, Any]], None]] = [] if page is None else [page.session]
        observers.append(_shown(stack, stop, format, "" if page is None else page.url))
        done = monitor(
            record, meters=words(meters), interval_s=interval,
            duration_s=duration, zone=zone, intensity=intensity, observers=observers,
            followers=followers, stop=stop,
        )  # fmt: skip
    for line in done.trouble:
        print(f"wattribute: {line}", file=sys.stderr)
    if done.last is not None and format == "table" and sys.stdout.isatty():
        from ..views.console_monitor import last_words

        print(last_words(done.last))
    if done.folder is not None:
        print(f"saved: {done.folder}", file=sys.stderr)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM and a closed terminal set, so that everything ends in order."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _shown(
    stack: contextlib.ExitStack, stop: threading.Event, format: str, url: str
) -> Callable[[dict[str, Any]], None]:
    """The observer for people: a screen on a terminal (which hides what was printed before: the page's address), else
    lines."""
    from ..views.console_monitor import Screen, line

    if format == "table" and sys.stdout.isatty():
        screen = stack.enter_context(Screen(stop, url))
        before = signal.signal(signal.SIGWINCH, lambda *_: screen.refresh())
        stack.callback(signal.signal, signal.SIGWINCH, before)
        return screen

    def write(status: dict[str, Any]) -> None:
        try:
            print(json.dumps(status) if format == "json" else line(status), flush=True)
        except BrokenPipeError:  # nobody reads any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            stop.set()

    return write


def _page(address: str) -> LivePage:
    """The page for browsers, served until it is closed."""
    from ..views.page.live import serve

    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise OptionError(f"--web {address}: give an address and a port, e.g. 127.0.0.1:8080, or nothing")
    page = serve(host or "127.0.0.1", int(port))
    print(page.url, file=sys.stderr, flush=True)
    return page
