"""``wattribute export PATH --to FORMAT|URL``: joules in other tools' files, readings on servers of time series."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import typer

from ..errors import OptionError
from .options import with_selection

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
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT|URL",
            help=f"{', '.join(_ENDINGS)} (csv and parquet write a folder of tables); or the readings, with their "
            "times, to victoria+http://HOST, influx+http://HOST/DB, influx2+https://HOST/ORG/BUCKET, otlp+http://HOST "
            "or openmetrics:FILE.",
        ),
    ],
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
    start: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="To a URL: when it began, for a recording without a wall clock."),
    ] = None,
    secrets: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE", help="To a URL: users, passwords, tokens by server; only you may read it."),
    ] = None,
) -> None:
    if ":" in to:
        return _send(paths, to, selection, start, secrets)
    if to not in _ENDINGS:
        raise OptionError.unknown("format", to, _ENDINGS)
    return _write(paths, to, selection, output, by, end, repeats, metadata)


def _send(paths: list[str], to: str, selection: dict[str, Any], start: str | None, secrets: str | None) -> None:
    from ..alignment.joining import read
    from ..ensemble.paths import parted
    from ..outputs.timeseries.send import send

    reading, _ = parted(selection)
    if to.startswith("openmetrics:") and len(paths) > 1:
        raise OptionError("openmetrics: takes one recording; give each its own file")
    for path in paths:
        sent = send(read(path, **reading), to, start=start, secrets=secrets)
        typer.echo(f"sent {sent:,} readings of {path} to {to.partition('?')[0]}", err=True)


def _write(
    paths: list[str], to: str, selection: dict[str, Any], output: str | None, by: str, end: str | None,
    repeats: str, metadata: str | None,
) -> None:  # fmt: skip
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
