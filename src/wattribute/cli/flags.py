"""Flags of ``run``, said without Typer: importing that takes longer than many a command runs, and commands wait for it.

``Option`` and ``Argument`` take what Typer's take and stand in the same place, in ``Annotated``. The quick way into a
verb (``quick``) reads them as they are; ``for_typer`` makes Typer's of them. ``with_flags`` puts a group of flags on a
verb.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

from .hints import hints


class Option:
    """What ``typer.Option`` is given."""

    def __init__(self, *declared: str, **more: Any) -> None:
        self.declared, self.more = declared, more


class Argument(Option):
    """What ``typer.Argument`` is given."""


def for_typer(command: Callable[..., None]) -> Callable[..., None]:
    """The same verb as Typer understands it."""

    def wrapper(*given: Any, **named: Any) -> None:
        command(*given, **named)

    found = {name: _real(hint) for name, hint in hints(command).items()}
    return _announced(wrapper, command, list(inspect.signature(command).parameters.values()), found)


def _real(hint: Any) -> Any:
    kind, note = (*typing.get_args(hint), None, None)[:2]
    if not isinstance(note, Option):
        return hint
    import typer

    make: Any = typer.Argument if isinstance(note, Argument) else typer.Option
    return Annotated[kind, make(*note.declared, **note.more)]


def _announced(
    wrapper: Callable[..., None],
    command: Callable[..., None],
    parameters: list[inspect.Parameter],
    found: dict[str, Any],
) -> Callable[..., None]:
    """A wrapper of a verb that shows these parameters, annotated with what was found."""
    wrapper = functools.wraps(command)(wrapper)
    annotated = [p.replace(annotation=found.get(p.name, p.annotation)) for p in parameters]
    wrapper.__signature__ = inspect.signature(command).replace(parameters=annotated)  # type: ignore[attr-defined]
    wrapper.__annotations__ = found
    del wrapper.__wrapped__
    return wrapper


def with_flags(
    parameter: str, flags: Callable[..., None], made: Callable[..., Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that replaces a verb's ``parameter`` by the flags in a signature; the verb gets ``made(**flags)``."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own, theirs = inspect.signature(command), inspect.signature(flags)
        found = hints(flags) | hints(command)
        found.pop(parameter)
        parameters = [p for name, p in own.parameters.items() if name != parameter]
        required = [p for p in parameters if p.default is inspect.Parameter.empty]
        optional = [p for p in parameters if p.default is not inspect.Parameter.empty]
        merged = [*required, *optional, *(p for name, p in theirs.parameters.items() if name not in own.parameters)]

        def wrapper(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in theirs.parameters if name not in own.parameters}
            command(**given, **{parameter: made(**chosen)})

        by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in merged]
        return _announced(wrapper, command, by_name, found)

    return decorate


def words(given: list[str]) -> list[str]:
    """The words of a flag that may be repeated, or hold several with commas between."""
    return [word for text in given for word in text.split(",") if word]
