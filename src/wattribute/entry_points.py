"""Entry points of the packages that are installed, by name: what ``importlib.metadata`` says, in a fifth of its time.

That module takes 30 ms to import, and a command that is measured waits for the process that reads its meters. Asked by
``plugins``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import reduce
from importlib import import_module
from typing import Any, NamedTuple


class EntryPoint(NamedTuple):
    """A name, and the object it stands for: ``package.module:attribute``."""

    name: str
    value: str

    def load(self) -> Any:
        module, _, attributes = self.value.partition("[")[0].strip().partition(":")
        return reduce(getattr, filter(None, attributes.split(".")), import_module(module))


def entry_points(group: str, path: Sequence[str]) -> dict[str, EntryPoint]:
    """The entry points of a group; of a package installed twice, those of the copy that is imported, the first.

    Packages inside zip files are left to ``importlib.metadata``.
    """
    if any(os.path.isfile(entry) for entry in path):
        from importlib import metadata

        return {point.name: EntryPoint(point.name, point.value) for point in metadata.entry_points(group=group)}
    points: dict[str, EntryPoint] = {}
    packages: set[str] = set()
    for entry in path:
        for package, text in _texts(entry or "."):
            if package not in packages:
                packages.add(package)
                points = {point.name: point for point in _section(text, group)} | points  # who comes first has the name
    return points


def _texts(folder: str) -> Iterator[tuple[str, str]]:
    """(package, its entry_points.txt) of those installed in a folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            package = name.rpartition(".")[0].partition("-")[0].lower().replace(".", "_")
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    yield package, file.read()
            except (OSError, UnicodeDecodeError):  # it has none
                yield package, ""


def _section(text: str, group: str) -> Iterator[EntryPoint]:
    is_ours = False
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            is_ours = line == f"[{group}]"
        elif is_ours and line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield EntryPoint(name.strip(), value.strip())
