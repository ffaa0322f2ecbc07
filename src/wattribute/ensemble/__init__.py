"""Many runs at once: read them, attribute them all with a ``run`` key, aggregate, pivot, compare.

A run that cannot be read or has no energy is left out and told as a problem, as long as another one can be used. Rows
follow names (frames, call paths, processes), so runs need not number them alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import NoDataError, OptionError, WattributeError
from ..model import Attribution, Problem, Recording
from .comparison import compare
from .paths import Metadata, PathLike, about, expand, names, parted
from .result import EnsembleAttribution, differences, joined, key_list

__all__ = ["Ensemble", "EnsembleAttribution", "Run", "attribute_all", "compare"]


@dataclass(frozen=True)
class Run:
    """One run of an ensemble; ``metadata`` become columns beside ``run``."""

    name: str
    recording: Recording
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ensemble:
    """Several runs of a program; ``problems`` says which could not be read."""

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...] = ()

    @classmethod
    def read(cls, paths: PathLike | Iterable[PathLike], metadata: Metadata | None = None, **selection: Any) -> Ensemble:
        """Read traces, archives or profiles, named by paths, folders of them, or patterns such as ``"runs/*.watt"``.

        A file of many runs (codecarbon) gives a run for each; labels of ``run --label`` become columns.
        ``metadata`` gives each run columns of its own: a mapping from run names (or paths as given), a function of
        the path, or a regular expression whose named groups are searched in the path (``r"n(?P<nodes>\\d+)"``).
        Other keyword arguments are those of :func:`wattribute.read`.
        """
        from ..alignment.joining import read_runs

        found = expand(paths)
        named = names(found)
        runs, problems, first = [], [], None
        for path, name in zip(found, named, strict=True):
            try:
                recordings, left_out = read_runs(path, **selection)
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
        cls, recordings: Mapping[str, Recording], metadata: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Ensemble:
        """An ensemble of recordings that were read already."""
        metadata = metadata or {}
        return cls(tuple(Run(name, recording, metadata.get(name, {})) for name, recording in recordings.items()))

    def attribute(self, by: str | Sequence[str] = ("device", "frame"), **options: Any) -> EnsembleAttribution:
        """Attribute every run; keyword arguments are those of :func:`wattribute.attribute`."""
        from ..engines import attribute

        keys = key_list(by)
        inner = [key for key in keys if key != "run"] or ["run"]
        parts: dict[str, Attribution] = {}
        problems, errors = list(self.problems), []
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
) -> Attribution:
    """Attribute what the paths name: one recording as such, several as an ensemble."""
    from ..engines import attribute

    found = expand(paths)
    if len(found) == 1:
        return attribute(found[0], by=by, **options)
    if options.pop("spans", False):
        raise OptionError("one row per span is for one run; use wattribute export --to parquet for several")
    reading, rest = parted(options)
    return Ensemble.read(found, **reading).attribute(by, **rest)
