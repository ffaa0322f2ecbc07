"""Words of a chart: the title that states the finding, the subtitle, the caption, names of runs and devices."""

from __future__ import annotations

import re

from ...model import Attribution, Recording
from .. import names
from ..description import missing_events
from ..numbers import amount, percent
from ..per_unit import line_per_unit
from ..selection import line_left_out
from .tables import regrouped
from .totals import known, summed, total

_WEIGHTY = ("missing", "truncated", "corrupt", "empty", "reset", "wrap", "dead", "mirrored", "ended-early")


def run_name(recording: Recording) -> str:
    """The name of the run, else of the folder it came from."""
    name = str(recording.metadata.get("name") or "")
    source = str(recording.metadata.get("source") or "").rstrip("/")
    if not name or name == "traces":
        parts = [part for part in source.split("/") if part and part not in ("traces.otf2", ".")]
        name = parts[-1] if parts else name
    return names.clean(name) if name else "this run"


def device_label(attribution: Attribution, host: str, device: str) -> str:
    """The device, with its host where there are several, and whether it is left out of sums."""
    devices = attribution.devices
    several = devices.get_column("host").n_unique() > 1
    counted = devices.filter((devices["host"] == host) & (devices["device"] == device)).get_column("counted").any()
    return names.clean(f"{host} {device}" if several and host else device) + ("" if counted else " (not counted)")


def subtitle(attribution: Attribution) -> str:
    """Method, shares, sensors, whose spans, run."""
    signals = sorted({re.sub(r"\d+$", "N", name) for name in attribution.devices.get_column("signal").to_list()})
    sensors = names.clean(signals[0]) if len(signals) == 1 else f"{len(attribution.devices)} sensors"
    of = ", ".join(sorted(set(attribution.devices.get_column("of").to_list())))
    shares = f"{attribution.question.share} shares" + (
        " (double counting on purpose)" if attribution.question.share == "full" else ""
    )
    if attribution.unit == "s":
        return f"{run_name(attribution.recording)} · seconds of threads and streams, of {of}"
    return f"{run_name(attribution.recording)} · {sensors} · energy of {of} · {attribution.question.method}, {shares}"


def caption(attribution: Attribution, *more: str) -> list[str]:
    """Idle, coverage, what was merged, problems."""
    measured, idle = total(attribution, "measured"), total(attribution, "idle")
    coverage = [value for value in attribution.devices.get_column("coverage").to_list() if value is not None]
    unit = attribution.unit
    rest = f"{amount(idle, unit)} of it idle ({percent(idle, measured)})" if idle else "none of it idle"
    first = f"{amount(measured, unit)} {known(attribution)}, {rest}."
    if coverage and min(coverage) < 0.995:
        first += f" Readings cover {100 * min(coverage):.0f} % of the spans' time at worst."
    if attribution.devices.get_column("estimated").any():
        first += " Outlined or dashed: estimated by a model, not measured."
    if left_out := line_left_out(attribution):
        first += f" {sentence(left_out)}"
    words = more if unit == "J" else tuple(text.replace("energy", "time") for text in more)
    sentences = [first, *words]
    if per_unit := line_per_unit(attribution):
        sentences.insert(1, sentence(per_unit))
    missing = missing_events(attribution.recording, why=False)
    if missing:
        sentences.insert(1, sentence(missing))
    weighty = sorted(attribution.problems, key=lambda problem: problem.kind not in _WEIGHTY)
    problems = [problem.message for problem in weighty if not missing or problem.kind != "missing"]
    if problems:
        shown = names.shorten(names.clean(problems[0]), 150)
        rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        sentences.append(f"Noticed: {shown}{rest}.")
    return sentences


def whose(attribution: Attribution) -> str:
    """ "GPU energy" when only GPUs were metered, else "energy"."""
    if attribution.unit == "s":
        return "time"
    kinds = {device.get("kind") for device in summed(attribution)}
    return "GPU energy" if kinds == {"gpu"} else "CPU energy" if kinds == {"cpu"} else "energy"


def finding(attribution: Attribution, energies: dict[str, float]) -> str:
    """The title: who used most."""
    measured = total(attribution, "measured")
    if not energies or measured <= 0 or max(energies.values()) <= 0:
        return f"{amount(measured, attribution.unit)} {known(attribution)}, none of it in spans"
    most = max(energies, key=lambda name: energies[name])
    label, share = names.shorten(names.plain(most), 60), percent(energies[most], measured)
    if _of_waiting_threads(attribution):
        return f"{label}: host threads were in it for {share} of the {whose(attribution)}"
    return f"{label}: {share} of the {whose(attribution)}"


def _of_waiting_threads(attribution: Attribution) -> bool:
    """Whether energy that kernels used is given to the host threads that ran or waited meanwhile."""
    gpus = [device["of"] for device in summed(attribution) if device.get("kind") == "gpu"]
    return bool(gpus) and set(gpus) == {"host"} and "gpu" in attribution.recording.locations.kind


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def by_frame(attribution: Attribution) -> dict[str, float]:
    """Self energy by frame name over the devices that may be added."""
    rows = regrouped(attribution, ("frame",)).rows
    return {name: float(energy) for name, energy in rows.select("frame", "self_j").iter_rows()}
