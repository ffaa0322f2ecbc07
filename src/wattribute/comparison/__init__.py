"""Many runs at once: read them, attribute them all with a ``run`` key, aggregate, pivot, compare.

A run that cannot be read or has no energy is left out and reported as a problem, as long as another one can be used.
Rows follow names (frames, call paths, processes), so runs need not number them alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import NoDataError, OptionError, WattributeError
from ..model import Attribution, Problem, Recording, display
from ..model.question import split
from .ensemble_comparison import compare
from .ensemble_rows import EnsembleAttribution, differences, joined, key_list
from .paths import Metadata, PathLike, about, expand, names

__all__ = ["Ensemble", "EnsembleAttribution", "Run", "attribute_all", "compare"]


@dataclass(frozen=True)
class Run:
    """One run of an ensemble; ``metadata`` become columns beside ``run``."""

    name: str
    recording: Recording
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Ensemble:
    """Several runs of a program; ``problems`` says which could not be read."""

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        return display.text(*self._described())

    def _repr_html_(self) -> str:
        return display.html(*self._described())

    def _described(self) -> tuple[str, dict[str, str], list[list[str]]]:
        about = list(dict.fromkeys(name for run in self.runs for name in run.metadata))
        rows = [[run.name, *(str(run.metadata.get(name, "")) for name in about)] for run in self.runs[: display.NAMES]]
        facts = {"left out": "; ".join(problem.message for problem in self.problems[:3])} if self.problems else {}
        if len(self.runs) > display.NAMES:
            facts["runs"] = f"{len(self.runs):,}, the first {display.NAMES} are shown"
        return f"Ensemble of {len(self.runs):,} runs", facts, [["run", *about], *rows]

    @classmethod
    def read(cls, paths: PathLike | Iterable[PathLike], metadata: Metadata | None = None, **selection: Any) -> Ensemble:
        """Read traces, archives or profiles, named by paths, folders of them, or patterns such as ``"runs/*.watt"``.

        A file of many runs (codecarbon) gives a run for each; labels of ``run --label`` become columns.
        ``metadata`` gives each run additional columns: a mapping from run names (or paths as given), a function of
        the path, or a regular expression whose named groups are searched in the path (``r"n(?P<nodes>\\d+)"``).
        Other keyword arguments are those of :func:`wattribute.read`.
        """
        from ..reading import read_runs

        files = expand(paths)
        named = names(files)
        runs, problems, first = [], [], None
        for path, name in zip(files, named, strict=True):
            try:
                recordings, left_out = read_runs(os.path.abspath(path), **selection)  # workers elsewhere read it too
            except OptionError:
                raise  # a wrong word is wrong for every run
            except WattributeError as error:
                first = first or error
                problems.append(Problem("run", f"{name} is left out: {error}"))
                continue
            problems += [Problem("run", line) for line in left_out]
            for number, recording in enumerate(recordings, 1):
                own = name if len(recordings) == 1 else f"{name} #{number}"
                labels = recording.metadata.get("labels", {})
                runs.append(Run(own, recording, {**labels, **about(path, own, metadata)}))
        if not runs and first is not None:
            raise first
        return cls(tuple(runs), tuple(problems))

    @classmethod
    def of(
        cls, recordings: Mapping[str, Recording | PathLike], metadata: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Ensemble:
        """An ensemble of recordings by name, with ``metadata`` by the same names; paths are read."""
        from ..reading import as_recording

        metadata = metadata or {}
        read = ((name, as_recording(recording)) for name, recording in recordings.items())
        return cls(tuple(Run(name, recording, metadata.get(name, {})) for name, recording in read))

    def attribute(self, by: str | Sequence[str] = ("device", "frame"), **options: Any) -> EnsembleAttribution:
        """Attribute every run to the keys ``by``; ``options`` are those of :func:`wattribute.attribute`."""
        from ..engines import attribute
        from ..engines.cluster import session

        keys = key_list(by)
        inner = [key for key in keys if key != "run"] or ["run"]
        parts: dict[str, Attribution] = {}
        problems, errors = list(self.problems), []
        with session():  # one cluster for all runs
            for run in self.runs:
                try:
                    parts[run.name] = attribute(run.recording, by=inner, **options)
                except WattributeError as error:
                    errors.append(error)
                    problems.append(Problem("run", f"{run.name} is left out: {error}"))
        if not parts:
            raise errors[0] if errors else NoDataError("the ensemble has no runs")
        metadata = {run.name: run.metadata for run in self.runs if run.name in parts}
        problems += differences(parts)
        for name, part in parts.items():
            problems += [Problem(p.kind, f"{name}: {p.message}", p.location) for p in part.problems]
        return joined(parts, metadata, keys, problems)


def attribute_all(
    paths: Iterable[PathLike], by: str | Sequence[str] = ("device", "frame"), **options: Any
) -> Attribution | EnsembleAttribution:
    """Attribute what the paths name: one recording as such, several as an ensemble."""
    from ..engines import attribute

    files = expand(paths)
    if len(files) == 1:
        return attribute(files[0], by=by, **options)
    if options.pop("spans", False):
        raise OptionError("one row per span is for one run; use wattribute export --to parquet for several")
    reading, rest = split(options)
    return Ensemble.read(files, **reading).attribute(by, **rest)
