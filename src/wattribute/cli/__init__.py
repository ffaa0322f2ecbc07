"""The command line: one module per verb, each a coat over one public function, imported when asked for."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys

from ..errors import WattributeError

# verb → its one-line help; the module of the same name holds a function ``command`` (and may have a class ``Command``)
VERBS: dict[str, str] = {
    "attribute": "Whose joules: energy per kernel, function, rank and device, with bounds and idle.",
    "compare": "Compare two groups of runs: what changed, how sure, and why.",
    "convert": "Turn a trace or profile into a *.watt folder of Parquet tables.",
    "doctor": "Show what can be metered on this machine, how well, and what would mend the rest.",
    "export": "Write joules in the format of another tool: Perfetto, speedscope, hatchet, Extra-P, tables …",
    "images": "List the container images that `run --image` finds here.",
    "info": "Show what a recording holds: hosts, processes, devices, signals, events, problems.",
    "monitor": "Watch the machine's devices live: power, use, energy and carbon so far, on a screen or a page.",
    "plot": "Draw a chart: power, timeline, flame graph, heatmap, call graph and more, to PNG, SVG, PDF or HTML.",
    "profile": "Run a Python program and say which functions used the energy.",
    "report": "Tell the story of a run on a page or two: HTML, Markdown or PDF.",
    "run": "Run a command and say what it cost: energy, power, carbon.",
    "summary": "Many runs in one table: time, energy and emissions per label, with confidence intervals.",
    "sql": "Ask a recording and its attribution in SQL.",
    "view": "Walk through a recording in the browser: lanes, power, tables, flame graphs.",
    "carbon": "Emissions, cost and water of a recording, for any zone and source.",
    "merge": "Join the recordings of a job's ranks on one timeline.",
    "zones": "List the zones whose carbon intensity is known, with source, year and licence.",
}


def main() -> None:
    """Run the command line; an error of ours is one line on stderr and exit code 1, and so is a full disk."""
    _prepare_streams()
    _spare_bytecode()
    try:
        try:
            if sys.argv[1:2] == ["run"]:
                _run_quickly(sys.argv[2:])
            from .verbs import app

            app()
        finally:
            sys.stdout.flush()  # here, where a full disk can still be told in a line
    except WattributeError as error:
        print(f"wattribute: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)  # as shells say; while a command runs, it gets the signal and we do not
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in stdout's buffer would fail again at exit
        if not isinstance(error, BrokenPipeError):
            print(
                f"wattribute: {error.filename or 'the output cannot be written'}: {error.strerror or error}",
                file=sys.stderr,
            )
        sys.exit(1)


# what a terminal that knows only ASCII shows instead
_SPELLED = {"µ": "u", "±": "+-", "…": "...", "–": "-", "−": "-", "×": "x", "→": "->", "≤": "<=", "≥": ">="}


def _spelled(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(_SPELLED.get(letter, "?") for letter in letters), error.end


def _prepare_streams() -> None:
    """Closed streams lead nowhere instead of being None, and a terminal that lacks a letter shows something else."""
    codecs.register_error("spelled", _spelled)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the command still gets it closed: Python's files are not inherited
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        with contextlib.suppress(AttributeError):  # not a text file of Python's own: somebody's replacement
            getattr(sys, name).reconfigure(errors="spelled")


def _spare_bytecode() -> None:
    """Where files may not grow (ulimit -f) Python would leave modules compiled to the half behind, for ever."""
    import resource

    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        sys.dont_write_bytecode = True


def _run_quickly(arguments: list[str]) -> None:
    """``run`` without Typer, which would keep its command waiting; returns where Typer should look."""
    from . import run
    from .quick import quick

    given = quick(run.command, arguments)
    if given is not None:
        run.command(**given)
