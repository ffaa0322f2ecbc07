"""``wattribute compare A… --vs B…``: what changed between two groups of runs."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Literal, Optional

import typer
from typer.core import TyperCommand

from ..errors import OptionError
from .options import with_selection

TOO_MUCH = 3  # the exit code of --fail-above: neither an error of ours (1) nor a wrong flag (2)


class Command(TyperCommand):
    """``--vs`` takes all words up to the next flag, so that a shell may expand ``--vs new/*``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spread(args, "--vs"))


@with_selection
def command(
    a: Annotated[list[str], typer.Argument(help="Runs to compare with: traces, recordings, profiles or patterns.")],
    vs: Annotated[list[str], typer.Option("--vs", metavar="B…", help="The other runs; all words up to the next flag.")],
    selection: dict[str, Any],
    by: Annotated[str, typer.Option(help="Keys: frame, path, process, device …, with commas.")] = "frame",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    fail_above: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="5%", help=f"Exit with {TOO_MUCH} if B surely uses more, and by more than this."),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many keys to print; 0 for all.")] = 20,
    format: Annotated[Literal["table", "json"], typer.Option(help="How to print.")] = "table",
) -> None:
    from ..ensemble import compare

    limit = None if fail_above is None else fraction(fail_above)
    found = compare(a, vs, by, confidence, **selection)
    if format == "json":
        print(json.dumps(found.to_dict(), ensure_ascii=False, indent=1))
    else:
        from rich.console import Console

        from ..views.console_compare import comparison_table

        Console(width=None if sys.stdout.isatty() else 160).print(comparison_table(found, top or None))
    if limit is not None and found.exceeds(limit):
        raise typer.Exit(TOO_MUCH)


def spread(args: list[str], flag: str) -> list[str]:
    """``--vs b1 b2 --by x`` becomes ``--vs b1 --vs b2 --by x``."""
    out: list[str] = []
    taking = False
    for at, word in enumerate(args):
        if word == "--":
            return out + args[at:]
        if word == flag:
            taking = True
        elif taking and not word.startswith("-"):
            out += [flag, word]
        else:
            taking = False
            out.append(word)
    return out if flag in out or flag not in args else [*out, flag]  # a flag with nothing after it is Click's to report


def fraction(text: str) -> float:
    """ "5%" or "0.05"; a bare 5 could mean either."""
    try:
        value = float(text.rstrip("% ")) / (100 if text.rstrip().endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 10 or (value >= 1 and not text.rstrip().endswith("%")):
        raise OptionError(f"--fail-above {text}: say it with a per cent sign, for example 5%")
    return value
