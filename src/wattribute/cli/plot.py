"""``wattribute plot``: a picture of a recording."""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentTypeError, Namespace
from typing import Any

from .arguments import Parser, add_question, at_least, between, question_from, words

_LEAST, _MOST = 50, 10_000
EXAMPLES = (
    "wattribute plot power trace -o power.png",
    "wattribute plot flame trace --of host -o flame.svg",
    "wattribute plot runs a.watt b.watt -o runs.html --theme dark",
)


def add_arguments(parser: Parser) -> None:
    from ..views import charts

    parser.add_table("Kinds", {chart.name: chart.about for chart in charts.every()})
    which = parser.group("Arguments")
    which.add_argument("kind", metavar="KIND", help="Kind of chart, see above.")
    which.add_argument(
        "paths", nargs="+", metavar="PATH", help="Trace, recording or profile; several for runs, history, histogram."
    )
    what = parser.group("What")
    what.add_argument("--value", metavar="V", help="heatmap, distribution: energy or power.")
    what.add_argument("--colour", metavar="C", help="timeline, node: by kind (of work), frame, energy or power.")
    what.add_argument(
        "--axes", metavar="A", help="power, node: shared (one scale without rare peaks), own (one each), full (all)."
    )
    what.add_argument(
        "--root", metavar="FUNCTION", help="flame, icicle, sunburst, callgraph: only what this function called."
    )
    what.add_argument("--zone", metavar="ZONE", help="carbon, runs: zone of the electricity; see `wattribute zones`.")
    what.add_argument(
        "--label-by",
        action="append",
        default=[],
        metavar="LABEL",
        help="history, histogram: labels to group by, or place; repeatable.",
    )
    what.add_argument("--by", dest="label_by", action="append", default=SUPPRESS, help=SUPPRESS)
    output = parser.group("Output")
    output.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="Picture: .png, .svg, .pdf, .html, .json, .dot; - for stdout.",
    )
    output.add_argument("--format", metavar="NAME", help="Format of the picture; default: by OUT, on stdout svg.")
    output.add_argument(
        "--theme",
        choices=("light", "dark"),
        default="light",
        metavar="NAME",
        help="Colour theme: light (default) or dark.",
    )
    output.add_argument(
        "--colours",
        metavar="NAME",
        help="Colours from little to much (heatmap, callgraph, node, timeline): viridis, magma, blues, reds, greys, or "
        "a list as #FFFFFF,#FF0000.",
    )
    output.add_argument("--title", metavar="TEXT", help="Title of the chart; default: what it shows.")
    output.add_argument("--top", type=at_least(1), metavar="N", help="Rows to show; the others become one.")
    output.add_argument(
        "--scale", type=between(0.1, 10), default=2.0, metavar="X", help="Pixels per point of a .png (default 2)."
    )
    output.add_argument(
        "--size", type=_size, metavar="WxH", help="Width and height of the picture in points, for example 480x300."
    )
    add_question(parser, without=("by", "statistics"))


def run(arguments: Namespace) -> None:
    from ..views import charts, plot

    looks = {name: getattr(arguments, name) for name in ("theme", "top", "value", "colour", "axes", "zone", "root")}
    if arguments.colours is not None:
        looks["theme"] = f"{arguments.theme}:{arguments.colours}"
    looks["by"] = words(arguments.label_by) or None
    sources: list[Any] = list(arguments.paths)
    if charts.get(arguments.kind).needs == "experiment":
        from ..sessions.experiment import experiment

        sources = [experiment(arguments.paths, zone=looks.pop("zone"))]
    plot.write(
        arguments.kind, sources, arguments.output, looks=looks, scale=arguments.scale, size=arguments.size,
        title=arguments.title, format=arguments.format, **question_from(arguments),
    )  # fmt: skip


def _size(text: str) -> tuple[float, float]:
    """ "480x300" as two numbers of points."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*[x×]\s*(\d+(?:\.\d+)?)", text)
    if match is None or not all(_LEAST <= float(number) <= _MOST for number in match.groups()):
        raise ArgumentTypeError(f"write it as WIDTHxHEIGHT, {_LEAST} to {_MOST:,} points each, for example 480x300")
    return float(match[1]), float(match[2])
