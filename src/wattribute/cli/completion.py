"""Completion scripts of shells (``--print-completion``), made by shtab from the parsers of all verbs."""

from __future__ import annotations

from importlib import import_module

from . import VERBS, program_parser
from .arguments import Parser

_FILES = ("DIR", "FILE", "OUT", "PATH", "PROGRAM", "X.watt")  # metavars of options and arguments that name files


def completion(shell: str) -> str:
    """The script that completes verbs, options, choices and files in a shell: bash, zsh or fish."""
    import shtab

    program = program_parser()
    verbs = program.add_subparsers(metavar="VERB")
    for verb, sentence in VERBS.items():
        module = import_module(f".{verb}", __package__)
        parser: Parser = verbs.add_parser(verb, help=sentence)
        module.add_arguments(parser)
        parser.finish(sentence, module.EXAMPLES)
        for action in parser._actions:
            if action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks
    script: str = shtab.complete(program, shell)
    return script
