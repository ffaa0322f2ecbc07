"""Writes docs/cli.md from the ``--help`` of every verb; ``--check`` only says whether it is up to date.

Options that all verbs have that read or attribute are listed once, in a section of their own.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from wattribute.cli import VERBS, program_parser, verb_parser
from wattribute.cli.arguments import Parser, add_question, add_reading

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
COLUMNS = 80
ABOUT = """\
You will be able to find every verb and option, and what each means.

Made from `--help` by `tools/make_cli_reference.py`. Verbs that read a recording also take the
[options of reading](#options-of-reading); verbs that attribute take these and the
[options of attribution](#options-of-attribution).

Completion: `wattribute --print-completion bash > ~/.local/share/bash-completion/completions/wattribute`; for zsh write
the script to `_wattribute` in a folder of `$fpath`, for fish to `~/.config/fish/completions/wattribute.fish`.
"""
READING, ATTRIBUTION = Parser(prog=""), Parser(prog="")
add_reading(READING)
add_question(ATTRIBUTION)


def names(parser: Parser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings}


def remove(parser: Parser, shared: set[str]) -> Parser:
    """The parser with fewer options in its help."""
    for group in parser._action_groups:
        group._group_actions = [one for one in group._group_actions if not shared.intersection(one.option_strings)]
    return parser


def verb_help(verb: str) -> str:
    parser = verb_parser(verb)
    has = names(parser)
    notes = []
    if {"--share", "--reader"} <= has:
        notes = ["  and the options of reading and of attribution"]
    elif "--reader" in has:
        notes = ["  and the options of reading"]
    shared = names(ATTRIBUTION if "--share" in has else READING) - ({"--to"} if verb == "export" else set())
    # a verb without options of reading may have one that is spelled alike
    remove(parser, (shared if notes else set()) | {"-h", "--help"})
    return "\n".join([parser.format_help().strip(), *notes])


def options_help(parser: Parser) -> str:
    """Only the options of a parser."""
    text = parser.format_help()
    return text[re.search(r"^\w[\w ]+:\n  -", text, re.MULTILINE).start() :].strip()


def page() -> str:
    os.environ["COLUMNS"] = str(COLUMNS)
    sections = {"": program_parser().format_help().strip()}
    sections |= {f"wattribute {verb}": verb_help(verb) for verb in VERBS}
    sections["Options of reading"] = options_help(READING)
    sections["Options of attribution"] = options_help(remove(ATTRIBUTION, names(READING)))
    parts = ["# Command line", "", ABOUT]
    for title, text in sections.items():
        parts += [*([f"## {title}", ""] if title else []), "```text", text, "```", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    made = page()
    if "--check" in sys.argv:
        sys.exit(
            0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == made else "docs/cli.md is old: run `make docs`"
        )
    PAGE.write_text(made, encoding="utf-8")
