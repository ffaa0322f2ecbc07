"""``wattribute compare A… --vs B…``: what changed between two groups of runs."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from ..errors import OptionError
from .arguments import Parser, add_format, add_question, at_least, question_from

if TYPE_CHECKING:
    from ..comparison.groups import Comparison

EXAMPLES = (
    "wattribute compare old*.watt --vs new*.watt",
    "wattribute compare old*.watt --vs new*.watt --by process --fail-above 5%",
)
TOO_MUCH = 3  # the exit code of --fail-above: neither an error of ours (1) nor a wrong command line (2)


def add_arguments(parser: Parser) -> None:
    which = parser.group("Arguments")
    which.add_argument(
        "a", nargs="+", metavar="A", help="Runs to compare with: traces, recordings, profiles, patterns."
    )
    which.add_argument(
        "--vs",
        nargs="+",
        action="extend",
        required=True,
        metavar="B",
        help="The other runs: all words up to the next option.",
    )
    output = parser.group("Output")
    output.add_argument(
        "--fail-above", metavar="PERCENT", help=f"Exit with {TOO_MUCH} if B certainly uses this much more, e.g. 5%%."
    )
    output.add_argument(
        "--strict", action="store_true", help="With --fail-above: a single run on a side fails, for it shows no noise."
    )
    output.add_argument(
        "--top", type=at_least(0), default=20, metavar="N", help="Rows to print (default 20); 0 for all."
    )
    add_format(parser)
    parser.group("Advanced").add_argument(
        "--confidence", type=float, default=0.95, metavar="X", help="Confidence level of the intervals (default 0.95)."
    )
    add_question(parser, without=("statistics",), defaults={"by": ("frame",)})


def run(arguments: Namespace) -> int:
    from ..comparison import compare

    limit = None if arguments.fail_above is None else fraction(arguments.fail_above)
    if arguments.strict and limit is None:
        raise OptionError("--strict is for --fail-above, for example: --fail-above 5% --strict")
    comparison = compare(arguments.a, arguments.vs, confidence=arguments.confidence, **question_from(arguments))
    if arguments.format == "json":
        print(json.dumps(comparison.to_dict(), ensure_ascii=False, indent=1))
    else:
        from ..views.console_compare import comparison_table
        from ..views.terminal import Console

        Console(width=None if sys.stdout.isatty() else 160).print(comparison_table(comparison, arguments.top or None))
    return verdict_code(comparison, limit, arguments.strict, arguments.format)


def verdict_code(comparison: Comparison, limit: float | None, strict: bool, format: str) -> int:
    """The exit code of --fail-above, which the last line explains; JSON stays alone on standard output."""
    if limit is None:
        return 0
    passed, line = comparison.check(limit, strict)
    print(line, file=sys.stderr if format == "json" else sys.stdout)
    return 0 if passed else TOO_MUCH


def fraction(text: str) -> float:
    """ "5%" or "0.05"; a bare 5 could mean either."""
    try:
        value = float(text.rstrip("% ")) / (100 if text.rstrip().endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 10 or (value >= 1 and not text.rstrip().endswith("%")):
        raise OptionError(f"--fail-above {text}: say it with a per cent sign, for example 5%")
    return value
