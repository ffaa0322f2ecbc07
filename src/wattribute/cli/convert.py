"""``wattribute convert``: any recording → our own archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .reading import ExcludeFrame, Frame, Metric, MetricKinds, Process, Threads, progress_bar


def command(
    path: Annotated[Path, typer.Argument(help="A trace, archive or profile.")],
    out: Annotated[Path, typer.Argument(help="The folder to make, for example run.watt.")],
    process: Process = None,
    frame: Frame = None,
    exclude_frame: ExcludeFrame = None,
    metric: Metric = None,
    metric_kind: MetricKinds = None,
    threads: Threads = None,
) -> None:
    import sys

    from ..archive import save
    from ..readers import read

    with progress_bar("converting") as progress:
        recording = read(
            path,
            process=process,
            frame=frame,
            exclude_frame=exclude_frame,
            metric=metric,
            metric_kinds=metric_kind or (),
            threads=threads,
            progress=progress,
        )
        save(recording, out, threads or 2, progress)
    for problem in recording.problems:
        print(f"wattribute: {problem.message}", file=sys.stderr)
