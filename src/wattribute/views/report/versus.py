"""What there is to say about two runs: how much more or less B used than A, which frames made the difference, and when.

Which differences are certain is decided by ``comparison``, as for ``wattribute compare``; this only lays it out.
"""

from __future__ import annotations

from typing import Any

from ...comparison import Ensemble, compare
from ...comparison.groups import Comparison
from ...comparison.verdict import change_with_range
from ...model import Attribution
from .. import names
from ..charts.captions import run_name
from ..charts.tables import one_view
from ..charts.totals import total
from ..description import missing_events
from ..numbers import amount
from ..plot import read_source
from .story import Section, Story, StoryTable, method, noticed, numbers_of, picture, with_emissions_of

_ROWS = 20


def versus(a: Any, b: Any, *, zone: str | None = None, **selection: Any) -> Story:
    """The story of B against A: recordings, or paths to them."""
    from ...engines import attribute

    asked = [dict(selection), dict(selection)]
    runs = [read_source(source, each) for source, each in zip((a, b), asked, strict=True)]
    views = [one_view(attribute(run, by=("device", "frame"), **each)) for run, each in zip(runs, asked, strict=True)]
    first, second = (Ensemble.of({name: run}) for name, run in zip("AB", runs, strict=True))
    comparison = compare(first, second, by=("frame",), **asked[0])
    titles = [run_name(run) for run in runs]
    sections = [
        Section("Both runs", table=_both(views, zone)),
        _frames(comparison),
        *(_when(f"{side}: {title}", view, side) for side, title, view in zip("AB", titles, views, strict=True)),
        method(views[0], None),
        *noticed(comparison.problems),
    ]
    lost = [f"{side}: {text}" for side, run in zip("AB", runs, strict=True) if (text := missing_events(run))]
    title, lead = f"{titles[1]} against {titles[0]}", names.clean(comparison.verdict)
    return Story(title, lead, _numbers(comparison, views), sections, "; ".join(lost))


def _numbers(comparison: Comparison, views: list[Attribution]) -> list[tuple[str, str]]:
    """What is compared, which is less than what was measured where only one run metered a device."""
    unit, whole = comparison.unit, comparison.whole
    sums = [whole[column] for column in comparison.amounts]
    all_of_it = all(abs(total(view, "measured") - one) <= 1e-3 * one for view, one in zip(views, sums, strict=True))
    part = "" if all_of_it or comparison.per else ", devices that both metered"
    both = [(f"{side}{part}", amount(one, unit)) for side, one in zip("AB", sums, strict=True)]
    return [*both, ("B against A", change_with_range(whole))]


def _both(views: list[Attribution], zone: str | None) -> StoryTable:
    """The numbers at the head of a report of one run, side by side."""
    a, b = (dict(numbers_of(*with_emissions_of(view, zone))) for view in views)
    rows = [[name, a.get(name, "–"), b.get(name, "–")] for name in {**a, **b}]
    return StoryTable(["", "A", "B"], rows, frozenset((1, 2)))


def _frames(comparison: Comparison) -> Section:
    rows = comparison.rows.to_dicts()
    labels = names.labels([str(row["frame"]) for row in rows[:_ROWS]], 56)
    table = []
    for row in rows[:_ROWS]:
        amounts = [amount(row[column], comparison.unit) for column in comparison.amounts]
        table.append([labels[str(row["frame"])], *amounts, change_with_range(row), row["verdict"]])
    what = "time" if comparison.unit == "s" else "energy"
    notes = [f"Self {what} of each frame, the largest difference first."]
    if len(rows) > _ROWS:
        notes.append(f"{len(rows) - _ROWS} more frames differ less; wattribute compare lists them.")
    columns = ["frame", "A", "B", "B against A", "verdict"]
    return Section("What changed", notes, table=StoryTable(columns, table, frozenset((1, 2, 3))))


def _when(title: str, view: Attribution, side: str) -> Section:
    name = "timeline" if view.unit == "s" else "power"
    return Section(title, picture=picture(name, view, f"{name}-{side.lower()}"))
