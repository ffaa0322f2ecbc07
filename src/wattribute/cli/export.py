"""``wattribute export PATH --to FORMAT|URL``: joules in other tools' files, readings on servers of time series."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..errors import OptionError
from .arguments import Parser, add_carbon, add_hardware, add_question, question_from, reading_from

EXAMPLES = (
    "wattribute export trace --to perfetto",
    "wattribute export trace --to parquet -o tables",
    "wattribute export run.watt --to openmetrics:run.om",
)


def add_arguments(parser: Parser) -> None:
    from ..plugins import outputs

    parser.group("Arguments").add_argument(
        "paths", nargs="+", metavar="PATH", help="Trace, recording or profile; several for extrap, csv, parquet."
    )
    output = parser.group("Output")
    output.add_argument(
        "--to",
        required=True,
        metavar="FORMAT|URL",
        help=f"Format: {', '.join(outputs.names())}; csv and parquet write a folder of tables. Or where to send the "
        "readings with their times: victoria+http://HOST, influx+http://HOST/DB, influx2+https://HOST/ORG/BUCKET, "
        "otlp+http://HOST, openmetrics:FILE, influx:FILE.",
    )
    output.add_argument(
        "-o", "--output", metavar="OUT", help="File or folder to write; by default named after the recording, here."
    )
    output.add_argument(
        "--repeats",
        choices=("keep", "drop"),
        default="keep",
        metavar="keep|drop",
        help="csv, parquet: keep (default) or drop readings that repeat the value before them.",
    )
    output.add_argument(
        "--metadata",
        metavar="RE",
        help=r"Parameters of runs: named groups searched in paths, e.g. 'n(?P<nodes>\d+)'.",
    )
    output.add_argument(
        "--secrets", metavar="FILE", help="URL: users, passwords and tokens by server; a file only you can read."
    )
    parser.group("Which part").add_argument(
        "--start", metavar="T", help="URL: when it started (ISO 8601), for a recording without a wall clock."
    )
    add_question(parser, old_to=False)
    add_carbon(parser, "otlp-spans, if: zone of the electricity; see `wattribute zones`.")
    add_hardware(parser)


def run(arguments: Namespace) -> None:
    if ":" in arguments.to:
        _send(arguments)
    else:
        _write(arguments)


def _send(arguments: Namespace) -> None:
    from ..outputs.timeseries.send import FILES, send
    from ..reading import read

    if arguments.to.startswith(FILES) and len(arguments.paths) > 1:
        raise OptionError(f"{arguments.to.partition(':')[0]}: takes one recording; give each its own file")
    for path in arguments.paths:
        recording = read(path, **reading_from(arguments))
        sent = send(recording, arguments.to, start=arguments.start, secrets=arguments.secrets)
        print(f"sent {sent:,} readings of {path} to {arguments.to.partition('?')[0]}", file=sys.stderr)


def _write(arguments: Namespace) -> None:
    from ..comparison import Ensemble
    from ..model.question import split
    from ..outputs import check_runs
    from ..plugins import outputs

    format, output = arguments.to, arguments.output
    writer = outputs.get(format)
    reading, question = split(question_from(arguments))
    ensemble = Ensemble.read(arguments.paths, arguments.metadata, **reading)
    answer = ensemble.attribute(**question)
    write_folder = getattr(writer, "write_folder", None)
    ending = f"-{format}" if write_folder else next(iter(writer.SUFFIXES), f".{format}")
    target = "/dev/stdout" if output == "-" else output or f"{ensemble.runs[0].name.replace('/', '-')}{ending}"
    one = answer if len(answer.parts) > 1 or format == "extrap" else next(iter(answer.parts.values()))
    check_runs(one, format, writer)
    if write_folder:
        write_folder(one, target, arguments.repeats)
    else:
        writer.write(one, target, **_place(arguments))
    for problem in answer.problems:
        if problem.kind == "run":
            print(f"wattribute: {problem.message}", file=sys.stderr)
    print(f"wrote {target}", file=sys.stderr)


def _place(arguments: Namespace) -> dict[str, Any]:
    """What was said of the electricity and the hardware, for outputs that say grams."""
    from ..carbon import Site

    names = ("pue", "embodied_kg", "lifetime_years", "embodied_share")
    site = Site(**{name: getattr(arguments, name) for name in names})
    place = {"zone": arguments.zone, "intensity": arguments.intensity, "site": None if site == Site() else site}
    return {name: value for name, value in place.items() if value is not None}
