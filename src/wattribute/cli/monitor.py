"""``wattribute monitor``: the machine's devices, live, without running anything."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OptionError
from .arguments import Parser, add_carbon, add_followers, add_format, add_meters, followers_from, words

if TYPE_CHECKING:
    from ..model.status import Status
    from ..views.page.live import LivePage

EXAMPLES = (
    "wattribute monitor",
    "wattribute monitor --duration 2 --record idle.watt",
    "wattribute monitor --web --format json --duration 2",
)
_FREE_PORT = "127.0.0.1:0"


def add_arguments(parser: Parser) -> None:
    what, output = parser.group("What"), parser.group("Output")
    what.add_argument("--duration", type=float, metavar="S", help="Stop after this many seconds; default: Ctrl-C.")
    what.add_argument("--per", metavar="UNIT", help="Also energy per unit of work that programs count meanwhile.")
    what.add_argument(
        "--counts", type=Path, metavar="DIR", help="--per: folder that those programs have in WATTRIBUTE_REGIONS."
    )
    add_carbon(parser)
    add_meters(parser)
    output.add_argument(
        "--web",
        nargs="?",
        const=_FREE_PORT,
        metavar="ADDR:PORT",
        help="Also serve a page with live charts; without an address on a free port of this machine.",
    )
    output.add_argument("--record", type=Path, metavar="X.watt", help="Save a recording in this new folder.")
    output.add_argument("-q", "--quiet", action="store_true", help="Print problems only; for --serve and --push.")
    add_format(parser, help="table (default): a screen, or lines without a terminal; json: lines.")
    add_followers(parser)
    parser.group("Advanced").add_argument(
        "--interval",
        type=float,
        metavar="S",
        help="Seconds between readings; default: as sensors update, shown every second.",
    )


def run(arguments: Namespace) -> None:
    from ..sessions.monitor import monitor

    format, followers = arguments.format, followers_from(arguments)
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(_stop_on_signals())
        page = None if arguments.web is None else stack.enter_context(_page(arguments.web))
        observers: list[Callable[[Status], None]] = [] if page is None else [page.session]
        if not arguments.quiet:
            observers.append(_display(stack, stop, format, "" if page is None else page.url))
        done = monitor(
            arguments.record,
            meters=words(arguments.meters),
            interval_s=arguments.interval,
            duration_s=arguments.duration,
            zone=arguments.zone,
            intensity=arguments.intensity,
            per=arguments.per,
            counts=arguments.counts,
            observers=observers,
            followers=followers,
            stop=stop,
        )
    for line in done.trouble:
        print(f"wattribute: {line}", file=sys.stderr)
    if done.last is not None and format == "table" and not arguments.quiet and sys.stdout.isatty():
        from ..views.console_monitor import last_words

        print(last_words(done.last))
    if done.folder is not None and not arguments.quiet:
        print(f"saved: {done.folder}", file=sys.stderr)


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM and a closed terminal set, so that everything ends in order."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _display(stack: contextlib.ExitStack, stop: threading.Event, format: str, url: str) -> Callable[[Status], None]:
    """The observer for people: a screen on a terminal (which hides what was printed before: the page's address), else
    lines."""
    from ..views.console_monitor import Screen, line

    if format == "table" and sys.stdout.isatty():
        screen = stack.enter_context(Screen(stop, url))
        before = signal.signal(signal.SIGWINCH, lambda *_: screen.refresh())
        stack.callback(signal.signal, signal.SIGWINCH, before)
        return screen

    def write(status: Status) -> None:
        try:
            print(json.dumps(status.as_dict()) if format == "json" else line(status), flush=True)
        except BrokenPipeError:  # the reader has gone
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
    if page.warning:
        print(f"wattribute: warning: {page.warning}", file=sys.stderr, flush=True)
    return page
