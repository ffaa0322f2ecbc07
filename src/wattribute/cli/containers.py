"""The flags of a container, for ``run``: a verb takes a parameter ``container`` and wears ``with_container``."""

from __future__ import annotations

from typing import Annotated, Any, Optional

from ..errors import OptionError
from .flags import Option, with_flags

# Typer reads these types at run time, on Python 3.10 too, and wants Optional
_Text = Optional[str]  # noqa: UP045
_Texts = list[str]


def _flags(
    image: Annotated[
        _Text, Option(metavar="IMAGE", help="Run in a container of this image; CMD replaces its own command.")
    ] = None,
    gpus: Annotated[str, Option(metavar="all|0,1", help="GPUs the container may use.")] = "",
    volume: Annotated[_Texts, Option(metavar="A:B", help="A of this machine as B in the container.")] = [],  # noqa: B006
    env: Annotated[_Texts, Option(metavar="K=V", help="A variable for the container; K alone: as here.")] = [],  # noqa: B006
    network: Annotated[str, Option(help="The container's network: none, host or a name.")] = "",
    pull: Annotated[bool, Option("--pull", help="Fetch the image from its registry first.")] = False,
    logs: Annotated[bool, Option(help="Show what the container says while it runs.")] = True,
    keep: Annotated[bool, Option("--keep", help="Do not remove the container.")] = False,
    results: Annotated[str, Option(metavar="DIR", help="Copy this folder of the container into the recording.")] = "",
) -> None:
    """Only its signature counts."""


def _container(image: str | None, **given: Any) -> Any:
    """The container asked for, or None; its flags without an image are a mistake."""
    if image is None:
        stray = [name for name, value in given.items() if value and name != "logs"]
        if stray:
            raise OptionError(f"--{stray[0]} is for containers; name one with --image")
        return None
    from ..recorders.container import Container

    return Container(image, volumes=given.pop("volume"), environment=given.pop("env"), **given)


with_container = with_flags("container", _flags, _container)
