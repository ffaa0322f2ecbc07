"""``wattribute view``: the interactive page of a recording, served on this machine or written to one HTML file."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from argparse import SUPPRESS, Namespace

from ..files import STANDARD_OUTPUT
from .arguments import Parser, add_carbon, add_question, between, question_from
from .progress import progress_bar

EXAMPLES = (
    "wattribute view trace",
    "wattribute view a.watt --compare b.watt --no-browser --port 8080",
    "wattribute view trace --html trace.html",
)


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument(
        "path", metavar="PATH", help="Trace, recording or profile; also a recording still in progress."
    )
    parser.group("What").add_argument("--compare", metavar="PATH", help="Second recording, shown side by side.")
    add_carbon(parser)
    output = parser.group("Output")
    output.add_argument(
        "-o", "--html", metavar="FILE", help="Write one self-contained file instead of serving; - for stdout."
    )
    output.add_argument(
        "--port", type=between(0, 65535, int), default=0, metavar="N", help="Port to serve on; 0 (default): a free one."
    )
    output.add_argument(
        "--bind",
        default="127.0.0.1",
        metavar="ADDR",
        help="Address to serve on (default 127.0.0.1); any but loopback can be reached from the network.",
    )
    output.add_argument(
        "--no-browser", dest="browser", action="store_false", help="Do not open the page in the browser."
    )
    output.add_argument("--browser", action="store_true", default=True, help=SUPPRESS)
    add_question(parser, without=("by", "statistics"))


def run(arguments: Namespace) -> None:
    from ..views.page import view, write_page

    path, compare = arguments.path, arguments.compare
    options = {**question_from(arguments), "zone": arguments.zone, "intensity": arguments.intensity}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with progress_bar("making tiles") as progress:
        if arguments.html is not None:
            write_page(path, arguments.html, compare=compare, progress=progress, **options)
            if arguments.html != STANDARD_OUTPUT:
                print(f"wrote {arguments.html}")
            return
        page = view(path, compare=compare, address=arguments.bind, port=arguments.port, progress=progress, **options)
    with page, contextlib.suppress(KeyboardInterrupt):
        print(f"{page.url}\nCtrl-C ends it.", flush=True)
        if page.warning:
            print(f"wattribute: warning: {page.warning}", file=sys.stderr, flush=True)
        if arguments.browser and _has_display():
            import webbrowser

            webbrowser.open(page.redirect_file().as_uri())
        page.wait()


def _has_display() -> bool:
    """Whether a window can be opened; without a display webbrowser would start a text browser in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
