"""The parser of a verb's command line, and the options that several verbs share.

A verb is a module with ``EXAMPLES``, ``add_arguments(parser)`` and ``run(arguments)``. Options of ``ReadOptions`` and
``Question`` come from the fields of these classes: a new field is a new option of every verb that reads or attributes.

``run`` waits for this module before its command starts: argparse and next to nothing else is imported here.
"""

from __future__ import annotations

import argparse
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import OptionError
from ..files import nonempty_path

if TYPE_CHECKING:
    from dataclasses import Field

    from ..model import Question, ReadOptions

GROUPS = ("Arguments", "What", "Which part", "Output", "Container", "Advanced")  # in the order of the help
MAX_WIDTH = 100
HELP_COLUMN = 26
FORMATS = ("table", "json")
PATHS = ("PATH", "FILE", "OUT", "X.watt", "DIR", "FOLDER")  # values that are paths


class Parser(argparse.ArgumentParser):
    """The parser of one verb: options in named groups, short help, mistakes in one line with a suggestion."""

    def __init__(self, **how: Any) -> None:
        # a fixed width, because argparse asks for a formatter often and the terminal's width takes an import
        super().__init__(
            **how,
            add_help=False,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=80),
        )
        self._groups = {title: self.add_argument_group(title) for title in GROUPS}
        self.coloured = True  # help on a terminal; Rich takes longer to import than the rest of the help to print
        self._examples: tuple[str, ...] = ()
        self._tables: list[str] = []
        self._program = False
        self._starts: Mapping[str, str] = {}
        self.former: Mapping[str, str] = {}  # options of earlier tools → what to write here
        self._words: Sequence[str] = ()

    def group(self, title: str) -> argparse._ArgumentGroup:
        """The group of options with this title."""
        return self._groups[title]

    def add_program(self, dest: str, starts: Mapping[str, str] | None = None, **how: Any) -> None:
        """Take a program and its arguments: all words from the first one that is not an option, or after ``--``.

        ``starts`` are options that begin a program, too, and the names of their values.
        """
        self._program, self._starts = True, starts or {}
        self.group("Arguments").add_argument(dest, nargs=argparse.REMAINDER, **how)
        for flag, name in self._starts.items():
            self.group("Arguments").add_argument(
                flag, nargs=argparse.REMAINDER, metavar=name, help=f"Run as `python {flag} {name} ARGS...` does."
            )

    def add_table(self, title: str, rows: Mapping[str, str]) -> None:
        """Add words and what they mean, shown below the examples."""
        width = max(map(len, rows)) + 1
        self._tables += ["", f"{title}:", *(f"  {word:<{width}} {meaning}" for word, meaning in rows.items())]

    def finish(self, sentence: str, examples: Iterable[str]) -> Parser:
        """Add what every verb has: ``--help``, and the sentence and examples above the options."""
        self.group("Advanced").add_argument("-h", "--help", action="help", help="Show this help and exit.")
        self.usage = self.usage or " ".join([self.prog, *_usage(self._actions), "[options]"])
        self.description = sentence
        self._examples = tuple(examples)
        return self

    def parse(self, words: Sequence[str]) -> Namespace:
        """The options and arguments; a mistake ends the program with exit code 2, a wrong choice is an OptionError."""
        self._words = words
        parse = self.parse_known_args if self._program else self.parse_known_intermixed_args
        arguments, extra = parse(self._detached(words))
        if extra:
            self.error(self._unknown(extra[0]))
        return arguments

    def _detached(self, words: Sequence[str]) -> list[str]:
        """The words with ``-mMODULE`` as two: argparse would take only this one, not the words that follow."""
        for at, word in enumerate(words):
            before = self._option_string_actions.get(words[at - 1]) if at else None
            if before is not None and before.nargs is None:
                continue  # the value of an option
            if word[:2] in self._starts and len(word) > 2:
                return [*words[:at], word[:2], word[2:], *words[at + 1 :]]
            if word == "--" or not word.startswith("-") or word in self._starts:
                break
        return list(words)

    def format_help(self) -> str:
        import textwrap

        sentence, self.formatter_class = self.description or "", _formatter(self.coloured)
        examples = ["", "Examples:", *(f"  {line}" for line in self._examples)]
        self.description = "\n".join([*textwrap.wrap(sentence, 78), *examples, *self._tables])
        try:
            return super().format_help()
        finally:
            self.description = sentence

    def error(self, message: str) -> NoReturn:
        """Print one line and exit; an option that does not exist is named first: it may be why another is missing."""
        strays = [word for word in self._words if word.startswith("--") and not self._knows(word)]
        if strays and not self._program:
            message = self._unknown(strays[0])
        print(f"wattribute: {message} (see: {self.prog} --help)", file=sys.stderr)
        sys.exit(2)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if action.metavar in PATHS and arg_string != action.default:  # argparse asks for a default's value, too
            nonempty_path(arg_string)
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            name = action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)
            raise OptionError.unknown(name, str(value), action.choices)

    def _knows(self, word: str) -> bool:
        return word == "--" or word.partition("=")[0] in self._option_string_actions

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {word!r}"
        name = word.partition("=")[0]
        if name in self.former:
            return f"{name} is {self.former[name]} here"
        shown = [name for action in self._actions if action.help != SUPPRESS for name in action.option_strings]
        return str(OptionError.unknown("option", name, shown))


def _usage(actions: Iterable[argparse.Action]) -> list[str]:
    """What a verb cannot do without: its arguments and required options."""
    words = []
    for action in actions:
        name = str(action.metavar or action.dest)
        if action.option_strings:
            words += [f"{action.option_strings[0]} {_shown(name, action)}"] if action.required else []
        else:
            words.append(_shown(name, action))
    return words


def _shown(name: str, action: argparse.Action) -> str:
    """The name of a value as usage shows it."""
    return {"+": f"{name}...", "?": f"[{name}]", argparse.REMAINDER: f"{name} ..."}.get(str(action.nargs), name)


class _PlainFormatter(argparse.RawDescriptionHelpFormatter):
    """Help without colours, the same on every Python."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        names = ", ".join(action.option_strings)
        if not names or action.nargs == 0:
            return names or str(action.metavar or action.dest)
        return f"{names} {_shown(str(action.metavar or action.dest), action)}"


def _formatter(coloured: bool) -> Callable[..., argparse.HelpFormatter]:
    """The formatter of help: with colours on a terminal, else plain."""
    import shutil

    width = min(shutil.get_terminal_size().columns, MAX_WIDTH) - 2
    kind: type[argparse.HelpFormatter] = _PlainFormatter
    if coloured and sys.stdout.isatty():
        from rich_argparse import RawDescriptionRichHelpFormatter

        class Coloured(RawDescriptionRichHelpFormatter):
            group_name_formatter = str
            help_markup = text_markup = False  # brackets are brackets

        Coloured.styles = Coloured.styles | {"argparse.groups": "bold", "argparse.prog": "default"}
        kind = Coloured
    return lambda prog: kind(prog, max_help_position=HELP_COLUMN, width=width)


# ---- types of values ----


def at_least(lowest: int) -> Callable[[str], int]:
    """The type of a whole number with a minimum."""

    def number(text: str) -> int:
        value = int(text)
        if value < lowest:
            raise argparse.ArgumentTypeError(f"must be at least {lowest}, not {text}")
        return value

    return number


def between(lowest: float, highest: float, kind: type[float] = float) -> Callable[[str], float]:
    """The type of a number in a range; ``kind`` int for whole ones."""

    def number(text: str) -> float:
        value = kind(text)
        if not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(f"must be {lowest:g} to {highest:g}, not {text}")
        return value

    return number


def words(texts: Iterable[str]) -> list[str]:
    """The words of an option that may be repeated, or hold several with commas between."""
    return [word for text in texts for word in text.split(",") if word]


# ---- options of a question ----


def add_reading(parser: Parser) -> None:
    """Add the options that say how a recording is read."""
    from ..model import ReadOptions

    _add_fields(parser, ReadOptions, (), {})


def add_question(
    parser: Parser, *, without: Collection[str] = (), defaults: Mapping[str, Any] | None = None, old_to: bool = True
) -> None:
    """Add the options that say how a recording is read and what is attributed.

    ``without`` are fields of the question that the verb chooses itself, ``defaults`` those it has another default for;
    ``old_to``: ``--to`` also means ``--until``.
    """
    from ..model import Question

    _add_fields(parser, Question, without, defaults or {})
    if old_to:
        parser.add_argument("--to", dest="Question.end", default=SUPPRESS, help=SUPPRESS)
    add_reading(parser)
    parser.group("Advanced").add_argument(
        "--engine",
        default=SUPPRESS,
        metavar="NAME",
        help="Where to compute: local (default), dask[:SCHEDULER] or arkouda[:HOST:PORT].",
    )


def reading_from(arguments: Namespace) -> dict[str, Any]:
    """Keyword arguments of ``wattribute.read``: the options of ``add_reading`` that were given."""
    return _given(arguments, "ReadOptions.")


def question_from(arguments: Namespace) -> dict[str, Any]:
    """Keyword arguments of ``wattribute.attribute``: the options of ``add_question`` that were given."""
    engine = {"engine": arguments.engine} if hasattr(arguments, "engine") else {}
    return {**reading_from(arguments), **_given(arguments, "Question."), **engine}


def _given(arguments: Namespace, prefix: str) -> dict[str, Any]:
    return {dest.removeprefix(prefix): value for dest, value in vars(arguments).items() if dest.startswith(prefix)}


def _add_fields(
    parser: Parser,
    options: type[Question] | type[ReadOptions],
    without: Collection[str],
    defaults: Mapping[str, Any],
) -> None:
    from dataclasses import fields

    for field in fields(options):
        if field.name not in without and (isinstance(field.default, bool) or field.metadata["kind"] is not None):
            _add_field(parser, field, f"{options.__name__}.{field.name}", defaults)


def _add_field(parser: Parser, field: Field[Any], dest: str, defaults: Mapping[str, Any]) -> None:
    about, default = field.metadata, defaults.get(field.name, field.default)
    help = about["help"].replace("%", "%%")
    if isinstance(default, tuple) and default:
        help = f"{help.removesuffix('.')} (default {','.join(default)})."
    if about["repeatable"] and "repeat" not in help:
        help += " Repeatable."
    how: dict[str, Any] = {"dest": dest, "default": defaults.get(field.name, SUPPRESS), "help": help}
    if isinstance(field.default, bool):
        how["action"] = argparse.BooleanOptionalAction if field.default else "store_true"
    else:
        metavar = about["metavar"] or field.name.upper()
        how |= {"type": about["kind"], "metavar": metavar, "choices": about["choices"] or None}
        how["action"] = "append" if about["repeatable"] else "store"
    parser.group(about["group"]).add_argument(about["flag"] or f"--{field.name.replace('_', '-')}", **how)


# ---- options of several verbs ----


def add_format(parser: Parser, choices: Sequence[str] = FORMATS, help: str = "How to print: {}.") -> None:
    """Add ``--format``: how to print; the first choice is the default."""
    parser.group("Output").add_argument(
        "--format", choices=choices, default=choices[0], metavar="FORMAT", help=help.format(_listed(choices))
    )


def _listed(choices: Sequence[str]) -> str:
    first, *others, last = choices
    return f"{', '.join([f'{first} (default)', *others])} or {last}"


def add_meters(parser: Parser) -> None:
    """Add ``--meters``: which sensors are read; ``words`` parts the values."""
    parser.group("What").add_argument(
        "--meters",
        action="append",
        default=[],
        metavar="NAME[:ROOT]",
        help="Meter to read, e.g. rapl or nvml; repeatable. Default: all that work.",
    )


def add_carbon(parser: Parser, zone: str = "Zone of the electricity, for emissions; see `wattribute zones`.") -> None:
    """Add ``--zone`` and ``--intensity``."""
    what = parser.group("What")
    what.add_argument("--zone", metavar="ZONE", action=_ZoneAction, help=zone)
    what.add_argument(
        "--intensity",
        metavar="G",
        help="Carbon intensity: g CO2e per kWh, a table (.csv, .parquet), yearly, gb or electricitymaps.",
    )


class _ZoneAction(argparse.Action):
    """A zone; an empty one lists them all, and is an error: nothing was run."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Namespace, value: Any, option: Any = None) -> None:
        if not value:
            from . import zones

            zones.run(Namespace(pattern="", format="table"))
            parser.exit(2, f"wattribute: {option} is empty: name one of these zones\n")
        setattr(namespace, self.dest, value)


def add_hardware(parser: Parser) -> None:
    """Add what the place and the hardware of a run add to its emissions."""
    what = parser.group("What")
    what.add_argument("--pue", type=float, default=1.0, metavar="X", help="Energy of the facility over the machine's.")
    what.add_argument("--embodied-kg", type=float, metavar="KG", help="CO2e of making the hardware, in kg.")
    what.add_argument(
        "--lifetime-years",
        type=float,
        default=4.0,
        metavar="Y",
        help="Service life of the hardware, in years (default 4).",
    )
    what.add_argument(
        "--embodied-share",
        type=float,
        default=1.0,
        metavar="X",
        help="Part of the hardware that the run used, 0 to 1 (default 1).",
    )


def add_followers(parser: Parser) -> None:
    """Add the options that let servers follow what runs."""
    output = parser.group("Output")
    output.add_argument(
        "--push",
        action="append",
        default=[],
        metavar="URL",
        help="Send readings while it runs; repeatable: victoria+http://HOST, influx+http://HOST/DB, "
        "influx2+https://HOST/ORG/BUCKET or otlp+http://HOST.",
    )
    output.add_argument(
        "--secrets", metavar="FILE", help="Users, passwords and tokens for --push, by server; a file only you can read."
    )
    output.add_argument(
        "--serve", metavar="[ADDR]:PORT", help="Serve /metrics for Prometheus while it runs, e.g. :9401."
    )


def followers_from(arguments: Namespace) -> list[Any]:
    """The processes that follow a run; mistakes are raised before anything runs."""
    if not arguments.push and arguments.serve is None:
        return []
    from ..sessions.follower_processes import Push, Serve

    followers: list[Any] = []
    if arguments.push:
        from ..outputs.timeseries.secrets import headers
        from ..outputs.timeseries.target import parse

        targets = list(dict.fromkeys(parse(address) for address in arguments.push))
        followers += [Push(*pair) for pair in zip(targets, headers(targets, arguments.secrets), strict=True)]
    if arguments.serve is not None:
        followers.append(Serve(arguments.serve))
        if arguments.serve.endswith(":0"):
            print(f"wattribute: serving {followers[-1].url}", file=sys.stderr, flush=True)
    return followers
