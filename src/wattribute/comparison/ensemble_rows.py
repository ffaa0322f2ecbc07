"""The tables of many runs as one: joined, checked for what does not fit together, aggregated, pivoted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..model import Answer, Attribution, Problem, Recording

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, repr=False)
class EnsembleAttribution(Answer):
    """Whose joules, over many runs: ``rows`` and ``devices`` begin with ``run`` and the metadata's columns.

    ``parts`` are the runs' own attributions.
    """

    parts: Mapping[str, Attribution] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def recordings(self) -> tuple[Recording, ...]:
        return tuple(part.recording for part in self.parts.values())

    def aggregate(self, by: str | Sequence[str] | None = None, values: str = "self_j") -> pl.DataFrame:
        """Statistics over runs of a column summed up by keys; a run without such a row counts as 0.

        ``by`` may name metadata too; the runs of one group are those with its metadata. Default: all keys but ``run``.
        """
        import polars as pl

        by = [by] if isinstance(by, str) else list(by or (key for key in self.by if key != "run"))
        fixed = [key for key in by if key in self._metadata_names()]
        self._check([*by, values])
        rows = self._one_unit(self.rows, values)
        summed = rows.group_by(["run", *by]).agg(pl.col(values).sum())
        free = [key for key in by if key not in fixed]
        runs = self.rows.select("run", *fixed).unique() if fixed else pl.DataFrame({"run": list(self.parts)})
        grid = runs.join(rows.select(free).unique(), how="cross") if free else runs
        full = grid.join(summed, on=["run", *by], how="left", nulls_equal=True).with_columns(
            pl.col(values).fill_null(0)
        )
        return full.group_by(by).agg(_statistics(values)).sort("mean", *by, descending=[True, *[False] * len(by)])

    def pivot(self, index: str | Sequence[str], columns: str = "run", values: str = "self_j") -> pl.DataFrame:
        """A table with a column per run (or per other key) and 0 where there is no row."""
        import polars as pl

        index = [index] if isinstance(index, str) else list(index)
        self._check([*index, columns, values])
        rows = self._one_unit(self.rows, values)
        summed = rows.group_by([*index, columns], maintain_order=True).agg(pl.col(values).sum())
        return summed.pivot(columns, index=index, values=values).with_columns(pl.exclude(index).fill_null(0))

    def _metadata_names(self) -> set[str]:
        return {name for one in self.metadata.values() for name in one}

    def _check(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.rows.columns:
                raise OptionError.unknown("column", name, self.rows.columns)

    def _one_unit(self, rows: pl.DataFrame, values: str) -> pl.DataFrame:
        units = rows.filter(rows[values].is_not_null())["unit"].unique().to_list() if "unit" in rows.columns else []
        if len(units) > 1:
            raise OptionError(f"{values} is in {' and '.join(sorted(map(str, units)))}; choose one with metric=RE")
        return rows


def key_list(by: str | Sequence[str]) -> list[str]:
    return [key.strip() for text in ([by] if isinstance(by, str) else by) for key in text.split(",") if key.strip()]


def joined(
    parts: Mapping[str, Attribution],
    metadata: Mapping[str, Mapping[str, Any]],
    by: Sequence[str],
    problems: Sequence[Problem],
) -> EnsembleAttribution:
    """One attribution of many: tables below each other, with the run and its metadata in front."""
    import polars as pl

    columns = list(dict.fromkeys(name for one in metadata.values() for name in one))
    tables = {}
    for which in ("devices", "rows"):
        named = []
        for run, part in parts.items():
            table = getattr(part, which)
            taken = [name for name in columns if name in table.columns]
            if taken:
                raise OptionError(f"metadata {taken[0]!r} has the name of a column; call it something else")
            about = [pl.lit(metadata[run].get(name)).alias(name) for name in columns]
            rest = [name for name in table.columns if name != "run"]
            named.append(table.select(pl.lit(run).alias("run"), *about, *rest))
        tables[which] = pl.concat(named, how="diagonal_relaxed")
    first = next(iter(parts.values()))
    keys = ("run", *(key for key in by if key != "run"))
    return EnsembleAttribution(
        devices=tables["devices"],
        rows=tables["rows"],
        question=first.question.but(by=keys),
        problems=tuple(problems),
        unit=first.unit if len({part.unit for part in parts.values()}) == 1 else "",
        left_out=sum(part.left_out for part in parts.values()),
        parts=parts,
        metadata=metadata,
    )


def differences(parts: Mapping[str, Attribution]) -> list[Problem]:
    """Runs whose devices, units or spans are not those of most others."""
    metered = {run: _metered(part) for run, part in parts.items()}
    usual = Counter(metered.values()).most_common(1)[0][0]
    problems = []
    for run, mine in metered.items():
        lacks, more = sorted(usual - mine), sorted(mine - usual)
        if lacks or more:
            words = [f"lacks {_list(lacks)}" if lacks else "", f"has {_list(more)}" if more else ""]
            problems.append(
                Problem("metrics", f"{run} is metered unlike the others: {' and '.join(filter(None, words))}")
            )
        if parts[run].rows.is_empty():
            problems.append(Problem("empty", f"{run} has no spans: all of its energy is idle"))
    return problems


def _metered(part: Attribution) -> frozenset[tuple[str, str]]:
    """Devices and units; a host's name says nothing, since a repeated run may get another node."""
    return frozenset(part.devices.select("device", "unit").unique().rows())


def _list(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{device} ({unit})" for device, unit in pairs)


def _statistics(values: str) -> list[pl.Expr]:
    import polars as pl

    column = pl.col(values)
    return [
        pl.len().alias("runs"),
        column.mean().alias("mean"),
        column.std().alias("std"),
        column.min().alias("min"),
        column.quantile(0.25, "linear").alias("q1"),
        column.median().alias("median"),
        column.quantile(0.75, "linear").alias("q3"),
        column.max().alias("max"),
    ]
