"""A verb's plain command line without Typer's machinery, which takes longer to load than a short command to run.

``quick`` reads the signature that Typer gets, too (``flags``). It understands options with plain values and nothing
else: for help, completion, mistakes and anything unusual it gives None, and Typer takes over. Used for ``run``, whose
command waits until this is done.
"""

from __future__ import annotations

import inspect
import os
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .flags import Argument
from .hints import hints

_PLAIN: dict[Any, Callable[[str], Any]] = {str: str, int: int, float: float, Path: Path}


def quick(command: Callable[..., None], arguments: Sequence[str]) -> dict[str, Any] | None:
    """The keyword arguments for a verb's ``command``, or None where Typer should look."""
    if any(name.endswith("_COMPLETE") for name in os.environ):
        return None
    options, rest_name, values = _declared(command)
    left = list(arguments)
    while left and left[0].startswith("-") and left[0] != "--":
        name, equals, given = left.pop(0).partition("=")
        if name not in options:
            return None
        parameter, kind, many = options[name]
        if kind is bool:
            if equals:
                return None
            values[parameter] = True
            continue
        if not equals:
            if not left:
                return None
            given = left.pop(0)
        try:
            value = _PLAIN[kind](given)
        except ValueError:
            return None
        values[parameter] = [*values[parameter], value] if many else value
    if left[:1] == ["--"]:
        left.pop(0)
    if not left:
        return None
    return {**values, rest_name: left}


def _declared(command: Callable[..., None]) -> tuple[dict[str, tuple[str, Any, bool]], str, dict[str, Any]]:
    """(option → (parameter, type, repeatable), the parameter that takes the rest, defaults)."""
    found = hints(command)
    options: dict[str, tuple[str, Any, bool]] = {}
    defaults: dict[str, Any] = {}
    rest_name = ""
    for name, parameter in inspect.signature(command).parameters.items():
        kind, info = typing.get_args(found[name])
        if isinstance(info, Argument):
            rest_name = name
            continue
        defaults[name] = parameter.default
        if "min" in info.more or "max" in info.more:  # a range is Typer's to check
            continue
        inner = [part for part in typing.get_args(kind) if part is not type(None)]
        many = typing.get_origin(kind) is list
        for flag in info.declared or (f"--{name.replace('_', '-')}",):
            options[flag] = name, inner[0] if inner else kind, many
    return options, rest_name, defaults
