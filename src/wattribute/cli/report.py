"""``wattribute report``: the story of a run, or of one run against another."""

from __future__ import annotations

from argparse import Namespace

from .arguments import Parser, add_question, question_from

EXAMPLES = (
    "wattribute report trace -o report.html",
    "wattribute report run.watt -o report.md --zone FR",
    "wattribute report old.watt --vs new.watt -o report.html",
)


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument("path", metavar="PATH", help="Trace, recording or profile.")
    parser.group("What").add_argument("--vs", metavar="PATH", help="Second run: report how it differs from the first.")
    parser.group("What").add_argument(
        "--zone", metavar="ZONE", help="Zone of the electricity; default: the world average. See `wattribute zones`."
    )
    parser.group("Output").add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="Report: .html, .md (pictures beside it), .pdf; - for stdout.",
    )
    parser.group("Output").add_argument(
        "--format", metavar="NAME", help="Format of the report; default: by OUT, on stdout html."
    )
    add_question(parser, without=("by", "statistics"))


def run(arguments: Namespace) -> None:
    from ..views.report import write_report

    write_report(
        arguments.path, arguments.output, vs=arguments.vs, zone=arguments.zone, format=arguments.format,
        **question_from(arguments),
    )  # fmt: skip
