"""``wattribute export PATH --to FORMAT``: joules in the files of other tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import typer

from .options import with_selection

Format = Literal["perfetto", "speedscope", "folded", "hatchet", "extrap", "csv", "parquet"]
_ENDINGS = {
    "perfetto": ".perfetto-trace",
    "speedscope": ".speedscope.json",
    "folded": ".folded",
    "hatchet": ".hatchet.json",
    "extrap": ".extrap.json",
    "csv": "-csv",
    "parquet": "-parquet",
}


@with_selection
def command(
    paths: Annotated[list[str], typer.Argument(help="A trace, archive or profile; several for extrap, csv, parquet.")],
    to: Annotated[Format, typer.Option("--to", help="csv and parquet write a folder of tables.")],
    selection: dict[str, Any],
    output: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("-o", "--output", help="Where to; by default named after the recording, in this folder."),
    ] = None,
    by: Annotated[str, typer.Option(help="Keys of the table attribution (csv, parquet).")] = "device,frame",
    end: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--until", metavar="T", help="Up to here (what is --to elsewhere): seconds, or ISO 8601."),
    ] = None,
    repeats: Annotated[
        Literal["keep", "drop"], typer.Option(help="Readings that repeat the value before them (csv, parquet).")
    ] = "keep",
    metadata: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="RE", help=r"Parameters of runs: named groups searched in paths, 'n(?P<nodes>\d+)'."),
    ] = None,
) -> None:
    from ..ensemble import Ensemble
    from ..ensemble.paths import parted
    from ..outputs.folder import FORMATS, write_folder
    from ..plugins import outputs

    reading, rest = parted(selection)
    ensemble = Ensemble.read(paths, metadata, **reading)
    found = ensemble.attribute(by, **rest, end=end)
    together = len(found.parts) > 1 or to == "extrap"
    target = "/dev/stdout" if output == "-" else output or f"{ensemble.runs[0].name.replace('/', '-')}{_ENDINGS[to]}"
    one = found if together else next(iter(found.parts.values()))
    if to in FORMATS:
        write_folder(one, target, to, repeats)
    else:
        outputs.get(to).write(one, target)
    for problem in found.problems:
        if problem.kind == "run":
            typer.echo(f"wattribute: {problem.message}", err=True)
    typer.echo(f"wrote {target}", err=True)
