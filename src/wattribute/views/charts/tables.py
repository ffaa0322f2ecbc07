"""Tables that charts draw: the question asked again by other keys, checked to be something a picture can add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ...engines import regroup
from ...errors import NoDataError, OptionError
from ...model import Attribution, Recording
from ..kinds import kinds_by_name


def regrouped(attribution: Attribution, by: Sequence[str], **changes: Any) -> Attribution:
    """The same question by other keys; the attribution itself when it already answers it."""
    table = one_view(regroup(attribution, by, **changes))
    return table if attribution.problems else replace(table, problems=())  # a report lists problems elsewhere


def one_view(attribution: Attribution) -> Attribution:
    """Energy or time, and one view of each device: a picture adds things up. Amounts have the names of joules."""
    if attribution.unit not in ("J", "s"):
        raise OptionError(
            "charts show energy, and this metric is not energy; choose another --metric, or use attribute"
        )
    attribution = attribution.as_amounts()
    devices = attribution.devices
    views = devices.group_by("host", "device", "signal").len().get_column("len")
    if len(views) and views.max() != 1:
        raise OptionError("a picture shows one view of a device; give --of once")
    signals = devices.group_by("host", "device").len().get_column("len")
    if len(signals) and signals.max() != 1:
        raise OptionError("a picture shows one signal of a device; narrow --metric")
    return attribution


def with_energy(attribution: Attribution) -> Attribution:
    """The same for a picture of power; NoDataError where no energy was metered."""
    if attribution.unit == "s":
        reasons = [problem.message for problem in attribution.problems if problem.kind == "no-energy"]
        raise NoDataError(reasons[0] if reasons else "time has no power; leave out --quantity time")
    if not attribution.recording.spans.locations():
        names = ", ".join(dict.fromkeys(attribution.devices["device"].to_list()))
        raise NoDataError(f"no location uses {names}: the recording has no spans")
    return one_view(attribution)


def of_host_threads(recording: Recording, of: Any, ask: Callable[..., Attribution]) -> Attribution:
    """What ``ask`` says of host threads when they have spans and ``of`` was left open; else what it says as it is."""
    if not of and has_stacks(recording):
        with suppress(NoDataError):
            return ask(of="host")
    return ask()


def with_stacks(attribution: Attribution, by: Sequence[str]) -> Attribution:
    """The question by other keys, of host threads when they have spans and it does not say whose."""
    return of_host_threads(attribution.recording, attribution.question.of, partial(regrouped, attribution, by))


def has_stacks(recording: Recording) -> bool:
    """Whether a host thread has spans."""
    gone = {missing.location for missing in recording.missing}
    threads = (row for row in recording.spans.locations() if recording.locations.kind[row] == "cpu" and row not in gone)
    return any(recording.locations.events[row] > 0 or len(recording.spans.spans(row)) for row in threads)


def frame_kinds(table: Attribution) -> dict[str, str]:
    """The kind of work by frame name, as the views of the rows count it; rows are by frame or by path."""
    rows = table.rows.select("of", "frame" if "frame" in table.by else "path")
    if "frame" not in table.by:
        rows = rows.explode("path")
    kinds = {of: kinds_by_name(table.recording.frames, of) for of in rows.get_column("of").unique()}
    counted = {name: kinds[of].get(name, "other") for of, name in rows.unique().sort(rows.columns).iter_rows()}
    return kinds_by_name(table.recording.frames) | counted


def check_value(value: str) -> str:
    """What a chart of rows shows: energy or power."""
    if value not in ("energy", "power"):
        raise OptionError.unknown("value to show", value, ("energy", "power"))
    return value
