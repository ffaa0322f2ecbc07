"""What a verb's parameters are annotated with, the same on every Python."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Annotated, Any


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, with Typer's part of them.

    Python 3.10 puts Optional around the annotation of a parameter whose default is None; Typer would then not find
    its option inside.
    """
    return {name: _bare(hint) for name, hint in typing.get_type_hints(function, include_extras=True).items()}


def _bare(hint: Any) -> Any:
    return next((part for part in typing.get_args(hint) if typing.get_origin(part) is Annotated), hint)
