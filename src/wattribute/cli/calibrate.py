"""``wattribute calibrate``: what a power sensor is, from a recording with a known load."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from .arguments import Parser, add_reading, reading_from

EXAMPLES = (
    "wattribute calibrate spans.csv --signals smi.csv -o card.toml",
    "wattribute calibrate spans.csv --signals smi.csv --meter meter.csv",
)


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument(
        "path", type=Path, metavar="PATH", help="Recording with a known load: steps or pulses."
    )
    what = parser.group("What")
    what.add_argument("--metric", metavar="RE", help="Gauge to calibrate.")
    what.add_argument(
        "--meter",
        type=Path,
        metavar="FILE",
        help="Log of an external meter, CSV of time_s (Unix) and power_w: gain and offset are fitted too.",
    )
    output = parser.group("Output")
    output.add_argument("-o", "--output", type=Path, metavar="OUT", help="Sensor file to write, for --sensors.")
    output.add_argument("--picture", type=Path, metavar="OUT", help="Picture of the fit: .svg, .png, .pdf or .html.")
    add_reading(parser)


def run(arguments: Namespace) -> None:
    from ..sessions.calibration import calibrate

    files = {name: getattr(arguments, name) for name in ("meter", "metric", "output", "picture")}
    calibration = calibrate(arguments.path, **files, **reading_from(arguments))
    if arguments.output is None:
        print(calibration.as_toml(), end="")
    for line in (f"{calibration.signal}: {calibration.summary}", *(f"! {note}" for note in calibration.notes)):
        print(line, file=sys.stderr)
