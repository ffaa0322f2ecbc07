"""The verbs as Typer serves them: help, completion, mistakes, and every verb but a plain ``run``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import OptionError
from . import VERBS
from .flags import for_typer


class _Verbs(TyperGroup):
    """Loads a verb's module when the verb is used, so that ``--help`` stays quick."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = formatter.width - 6 - max(map(len, VERBS))
        rows = [(name, TyperCommand(name, help=text).get_short_help_str(width)) for name, text in VERBS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            raise OptionError.unknown("verb", cmd_name, VERBS)
        verb = typer.Typer(add_completion=False)
        module = import_module(f"..{cmd_name}", __name__)
        context, kind = getattr(module, "CONTEXT", None), getattr(module, "Command", None)
        verb.command(cmd_name, help=VERBS[cmd_name], cls=kind, context_settings=context)(for_typer(module.command))
        return typer.main.get_command(verb)


app = typer.Typer(cls=_Verbs, no_args_is_help=True, add_completion=True, rich_markup_mode=None)


@app.callback()
def wattribute() -> None:
    """Whose joules? Energy and carbon for ranks, GPUs, kernels, functions, call paths and runs."""
