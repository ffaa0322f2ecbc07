"""An Attribution: whose joules. Tables as Polars frames, the question they answer, and the recording they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from . import display
from .question import Question

if TYPE_CHECKING:
    import polars as pl
    from typing_extensions import Self

    from .recording import Problem, Recording


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """The tables of a question, whether about one run (Attribution) or about many (EnsembleAttribution).

    ``devices``: one row per (device, signal, host, of): measured_j, attributed_j, idle_j, coverage, unit, estimated …
    ``rows``: the question's keys, then self_j, total_j, their bounds, self_ns, total_ns, covered_ns, power_w, calls
    (``*_value`` and ``unit`` instead of ``*_j`` for a metric that is not energy), sorted by self energy, largest first.
    ``left_out`` is what the rows received that the question did not select. With ``question.per``, rows also have
    count and self_count (what was counted in them), j_per_unit with its ranges and s_per_unit (total over count), and
    run_j_per_unit (self over all that was counted).
    """

    devices: pl.DataFrame
    rows: pl.DataFrame
    question: Question = field(default_factory=Question)
    problems: Sequence[Problem] = ()
    unit: str = "J"  # of self and total; "" where rows have several
    left_out: float = 0.0

    def __repr__(self) -> str:
        return display.text(*self._described())

    def _repr_html_(self) -> str:
        return display.html(*self._described())

    def _described(self) -> tuple[str, dict[str, str], list[list[str]]]:
        """A title, the books of what counts, and the first rows."""
        names = [str(recording.metadata.get("name", "")) for recording in self.recordings]
        suffix, unit = self.suffix, self.unit
        counted = self.devices.filter("counted") if self.devices["counted"].any() else self.devices
        sums = {name: float(counted[f"{name}_{suffix}"].sum()) for name in ("measured", "attributed", "idle")}
        measured, attributed, idle = (f"{display.number(amount)} {unit}".strip() for amount in sums.values())
        how = "estimated" if counted["estimated"].all() and len(counted) else "measured"
        facts = {
            "books": f"{measured} {how} = {attributed} attributed + {idle} idle",
            "devices": display.listed(counted["device"]),
            "rows": f"{len(self.rows):,} by {', '.join(self.by)}",
        }
        if self.problems:
            facts["problems"] = f"{len(self.problems):,}, the first: {self.problems[0].message}"
        keys = [name for name in self.by if name in self.rows.columns]
        rows = [[*keys, f"self {unit}".strip()]]
        for row in self.rows.head(display.ROWS).to_dicts():
            texts = [" > ".join(row[key]) if isinstance(row[key], list) else str(row[key]) for key in keys]
            rows.append([*texts, display.number(row[f"self_{suffix}"])])
        return f"{type(self).__name__} of {display.listed(map(repr, names))}", facts, rows

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """The recordings that were asked about, in order."""
        raise NotImplementedError

    @property
    def by(self) -> tuple[str, ...]:
        """The keys of the rows."""
        return self.question.keys

    @property
    def suffix(self) -> str:
        """How columns of amounts end: "j" for energy, else "value"."""
        return "j" if self.unit == "J" else "value"

    @property
    def in_seconds(self) -> bool:
        """Whether time was attributed: no energy was metered, or the question asks for time."""
        return self.unit == "s" and all(kind == "time" for kind in self.devices["kind"])

    def as_amounts(self) -> Self:
        """The same with amounts in columns named as those of energy (``self_j``, ``power_w``) though in ``unit``.

        For what adds up and draws any one quantity; what leaves the program keeps the name of its unit.
        """
        if self.suffix == "j":
            return self

        def named(table: pl.DataFrame) -> pl.DataFrame:
            amounts = {name: name.removesuffix("_value") + "_j" for name in table.columns if name.endswith("_value")}
            return table.rename(amounts | ({"self_rate": "power_w"} if "self_rate" in table.columns else {}))

        return replace(self, devices=named(self.devices), rows=named(self.rows))


@dataclass(frozen=True, kw_only=True, repr=False)
class Attribution(Answer):
    """Energy given to the spans of one recording."""

    recording: Recording
    engine: str = "local"  # where it was computed, for asking again
    count: float | None = None  # how many of ``question.per`` were counted in the time that was asked about

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """The recording alone."""
        return (self.recording,)
