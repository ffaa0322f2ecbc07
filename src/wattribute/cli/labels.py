"""The flags of experiments, for ``run``: a verb takes a parameter ``series`` and wears ``with_experiment``."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Optional

from ..errors import OptionError, OutputError
from .flags import Option, with_flags

# Typer reads these types at run time, on Python 3.10 too, and wants Optional
_Folder = Optional[Path]  # noqa: UP045
_KEY = re.compile(r"[\w.-]+")
_NUMBERS = itertools.count(1)


def _flags(
    label: Annotated[
        list[str], Option(metavar="KEY=VALUE", help="What this run is, for `summary` and `plot`; repeatable.")
    ] = [],  # noqa: B006
    experiment: Annotated[
        _Folder, Option(metavar="DIR", help="Add the recording to this folder of runs, under a new name.")
    ] = None,
) -> None:
    """Only its signature counts."""


@dataclass(frozen=True)
class Series:
    """Where the runs of an experiment go, and what they are."""

    folder: Path | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        return {"labels": dict(self.labels)} if self.labels else {}

    def check(self, output: Path | None, compare: bool) -> None:
        """Raises OptionError for flags that do not go together."""
        if self.folder is not None and output is not None:
            raise OptionError("--experiment names recordings itself; leave out --output")
        if compare and (self.folder is not None or self.labels):
            raise OptionError("--compare keeps its own two groups; leave out --experiment and --label")

    def place(self, output: Path | None) -> Path | None:
        """The folder of the next run: a name that no other process takes, or ``output`` outside an experiment."""
        if self.folder is None:
            return output
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be made: {error.strerror}") from error
        # the process and a number: two at once, and two within a second, never meet
        return self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_NUMBERS):03d}.watt"


def _series(label: list[str], experiment: Path | None) -> Series:
    labels: dict[str, str] = {}
    for text in label:
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key) or not value:
            raise OptionError(f"--label {text}: write it as KEY=VALUE (keys: letters, digits, _ . -), e.g. mode=train")
        labels[key] = value
    return Series(experiment, labels)


with_experiment = with_flags("series", _flags, _series)
