"""The command line: one module per verb, each a coat over one public function, imported when the verb is used."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from importlib import import_module

from ..errors import OptionError, PartialResultWarning, WattributeError

TYPE_CHECKING = False  # typing is not needed to start a command
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .arguments import Parser

# verb → its one-line help; the module of the same name has EXAMPLES, ``add_arguments(parser)`` and ``run(arguments)``
VERBS: dict[str, str] = {
    "run": "Run a command and print its energy, power and carbon.",
    "profile": "Run a Python program and print the energy of its functions.",
    "monitor": "Watch power, energy and carbon of this machine's devices live.",
    "doctor": "Show what can be metered on this machine, and how to enable more.",
    "baseline": "Measure the power of this machine's devices at rest.",
    "attribute": "Print the energy of kernels, functions, ranks and devices.",
    "info": "Show what a recording holds: hosts, devices, signals, problems.",
    "view": "Explore a recording in the browser: timeline, power, flame graphs.",
    "plot": "Draw a chart of a recording to PNG, SVG, PDF or HTML.",
    "report": "Write a report of a run: HTML, Markdown or PDF.",
    "compare": "Compare two groups of runs: what changed, and how certain it is.",
    "summary": "Summarise many runs in one table, per label.",
    "carbon": "Print emissions, cost and water of a recording.",
    "plan": "Find the time to start a run at which it emits least.",
    "zones": "List the zones whose carbon intensity is known.",
    "calibrate": "Fit a power sensor to a known load or to an external meter.",
    "export": "Write joules for other tools: Perfetto, speedscope, tables.",
    "sql": "Query a recording and its attribution in SQL.",
    "convert": "Convert a trace or profile into a *.watt folder of Parquet tables.",
    "merge": "Merge the recordings of a job's ranks into one.",
    "images": "List the container images that `run --image` can use.",
    "demo": "Show the main jobs on samples that come with wattribute.",
}
SENTENCE = "Whose joules? Energy and carbon for ranks, GPUs, kernels, functions, call paths and runs."
EXAMPLES = ("wattribute run -- python train.py", "wattribute attribute trace --by process,frame")
EXIT_CODES = """\
Exit codes:
  0    Success.
  1    Error: a line on stderr says what is wrong and what to do.
  2    The command line was not understood: unknown verb or option,
       missing argument.
  3    --fail-above: the energy rose by more than the limit; with --strict
       also if a single run cannot show that it did not.
  4    The result is partial: workers of a cluster were lost.
  130  Interrupted (Ctrl-C).
  run and profile exit with the code of the program (128 + N after signal N;
  126 or 127 if it cannot be started)."""
SHELLS = ("bash", "zsh", "fish")
PARTIAL = 4  # the exit code of a result of which a part is missing


def main() -> None:
    """Run the command line; an error of ours is one line on stderr and exit code 1, and so is a full disk.

    A result of which a part is missing is shown, a line on stderr says what is missing, and the exit code is PARTIAL.
    """
    _prepare_streams()
    _spare_bytecode()
    partial = _catch_partial_results()
    try:
        try:
            code = _run(sys.argv[1:])
        finally:
            sys.stdout.flush()  # here, where a full disk can still be reported in a line
    except WattributeError as error:
        print(f"wattribute: {error}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as done:
        if partial and not done.code:
            sys.exit(PARTIAL)
        raise
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
    sys.exit(code or (PARTIAL if partial else 0))


def _catch_partial_results() -> list[str]:
    """Print warnings of partial results as lines of ours; they are in the list."""
    import warnings

    partial: list[str] = []
    show = warnings.showwarning

    def note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, PartialResultWarning):
            show(message, category, *where, **more)
            return
        partial.append(str(message))
        print(f"wattribute: partial result: {message}", file=sys.stderr)

    warnings.showwarning = note
    warnings.simplefilter("always", PartialResultWarning)
    return partial


def _run(words: Sequence[str]) -> int:
    """Run the verb that the words begin with; gives the exit code."""
    if not words or words[0].startswith("-"):
        return _run_without_verb(words)
    verb = words[0]
    if verb not in VERBS:
        program_parser().error(str(OptionError.unknown("verb", verb, VERBS)))
    arguments = verb_parser(verb).parse(words[1:])
    return import_module(f".{verb}", __name__).run(arguments) or 0


def _run_without_verb(words: Sequence[str]) -> int:
    parser = program_parser()
    arguments = parser.parse(words)
    if arguments.version:
        from .. import __version__

        print(f"wattribute {__version__}")
        return 0
    if arguments.print_completion is not None:
        from .completion import completion

        print(completion(arguments.print_completion))
        return 0
    parser.print_help()
    return 2


def program_parser() -> Parser:
    """The parser of the program without a verb; the verbs are listed, not imported."""
    from .arguments import Parser

    parser = Parser(prog="wattribute", usage="wattribute VERB [options]", epilog=EXIT_CODES)
    parser.coloured = False
    options = parser.group("Advanced")
    options.title = "Options"
    options.add_argument("--version", action="store_true", help="Print the version and exit.")
    options.add_argument(
        "--print-completion",
        choices=SHELLS,
        metavar="SHELL",
        help="Print a completion script for bash, zsh or fish and exit.",
    )
    parser.add_table("Verbs (wattribute VERB --help says more)", VERBS)
    return parser.finish(SENTENCE, EXAMPLES)


def verb_parser(verb: str) -> Parser:
    """The parser of a verb."""
    from .arguments import Parser

    module = import_module(f".{verb}", __name__)
    parser = Parser(prog=f"wattribute {verb}")
    module.add_arguments(parser)
    return parser.finish(VERBS[verb], module.EXAMPLES)


# what a terminal that knows only ASCII shows instead
_ASCII = {"µ": "u", "±": "+-", "…": "...", "–": "-", "−": "-", "×": "x", "→": "->", "≤": "<=", "≥": ">="}


def _replace_letters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(_ASCII.get(letter, "?") for letter in letters), error.end


def _prepare_streams() -> None:
    """Closed streams lead nowhere instead of being None; a terminal that lacks a letter shows another."""
    codecs.register_error("spelled", _replace_letters)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the command still gets it closed: Python's files are not inherited
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        with contextlib.suppress(AttributeError):  # not a text file of Python's own: a replacement
            getattr(sys, name).reconfigure(errors="spelled")


def _spare_bytecode() -> None:
    """Under a file-size limit (ulimit -f) Python may leave truncated .pyc files behind; do not write any."""
    import resource

    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        sys.dont_write_bytecode = True
