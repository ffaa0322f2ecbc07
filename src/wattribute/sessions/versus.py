"""Two commands measured against each other: warmed up, run in turns with rests between, recorded, compared.

Turns alternate (A B, B A, A B …), so that a machine that slowly warms up or is shared by the hour favours neither. Each
run is an ordinary recording in the output folder; ``wattribute compare`` gives the same answer from them later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..comparison import Ensemble, compare
from ..comparison.groups import Comparison
from ..errors import NoDataError, OptionError
from ..files import new_folder
from ..model import Problem
from ..recorders.command import run_child
from .run import RunResult, run

REPEAT, WARM_UPS, REST_S = 5, 1, 1.0
SEPARATOR = "---"


@dataclass(frozen=True)
class Versus:
    """The comparison (None if too little could be recorded), every run by its name, and the exit code to pass on."""

    comparison: Comparison | None
    runs: dict[str, RunResult]
    folder: Path
    exit_code: int
    trouble: tuple[str, ...] = ()


def split_commands(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The commands left and right of ``---``."""
    if list(argv).count(SEPARATOR) != 1:
        raise OptionError("--compare needs two commands with three dashes between: run --compare -- cmdA --- cmdB")
    at = list(argv).index(SEPARATOR)
    first, second = list(argv[:at]), list(argv[at + 1 :])
    if not first or not second:
        raise OptionError("--compare needs a command on each side of the three dashes")
    return first, second


def versus(
    first: Sequence[str],
    second: Sequence[str],
    output: str | os.PathLike[str] | None = None,
    *,
    repeat: int = REPEAT,
    warm_ups: int = WARM_UPS,
    rest_s: float = REST_S,
    by: str = "frame",
    confidence: float = 0.95,
    sleep: Callable[[float], None] = time.sleep,
    **options: Any,
) -> Versus:
    """Run two commands in turns and compare them; other keyword arguments are those of :func:`wattribute.run`."""
    if repeat < 1 or warm_ups < 0 or rest_s < 0:
        raise OptionError(f"repeat {repeat}, warm-ups {warm_ups}, rest {rest_s:g} s: choose at least 1, 0 and 0")
    commands = {"a": list(first), "b": list(second)}
    default = f"wattribute-compare-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = new_folder(default if output is None else output)
    for _ in range(warm_ups):
        for name, command in commands.items():
            ended = run_child(command)
            if ended.exit_code:
                folder.rmdir()  # nothing was recorded
                why = ended.error or f"it failed with exit code {ended.exit_code} while warming up"
                return Versus(None, {}, folder, ended.exit_code, (f"{name.upper()}: {why}",))
            sleep(rest_s)
    runs: dict[str, RunResult] = {}
    for turn in range(1, repeat + 1):
        for name in ("a", "b") if turn % 2 else ("b", "a"):
            if runs:
                sleep(rest_s)
            runs[f"{name}-{turn}"] = done = run(commands[name], folder / f"{name}-{turn}.watt", **options)
            if done.late_signal:
                raise KeyboardInterrupt
            if done.exit_code:
                return _ended(runs, folder, by, confidence)
    return _ended(runs, folder, by, confidence)


def _ended(runs: dict[str, RunResult], folder: Path, by: str, confidence: float) -> Versus:
    """Compare the runs that went well; report one that failed and return its exit code."""
    problems = [
        Problem("run", f"{name} failed with exit code {done.exit_code}: it is left out, and nothing was run after it")
        for name, done in runs.items()
        if done.exit_code
    ]
    sides = [
        Ensemble.of({n: r.recording for n, r in runs.items() if n[0] == side and r.recording and not r.exit_code})
        for side in "ab"
    ]
    trouble = tuple(dict.fromkeys(line for done in runs.values() for line in done.trouble))
    code = next((done.exit_code for done in runs.values() if done.exit_code), 0)
    notices = (*trouble, *(problem.message for problem in problems))
    if not all(side.runs for side in sides):
        return Versus(
            None, runs, folder, code, (*notices, "there is nothing to compare: a side has no run that went well")
        )
    try:
        comparison = compare(sides[0], sides[1], by=by, confidence=confidence)
    except NoDataError as error:
        return Versus(None, runs, folder, code, (*notices, str(error)))
    return Versus(replace(comparison, problems=(*problems, *comparison.problems)), runs, folder, code, trouble)
