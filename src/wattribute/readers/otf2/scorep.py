"""What Score-P leaves beside a trace: ``scorep.cfg`` (all settings) and ``MANIFEST.md`` (those the user set)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LARGEST = 1 << 20
_SETTING = re.compile(r"^(SCOREP_\w+)=(.*)$")
_LISTED = re.compile(r"^\s+(SCOREP_\w+)\s*$")
_INTERVAL = re.compile(r"(?:INTERVAL|PERIOD|SAMPLING_RATE|FREQUENCY)", re.IGNORECASE)


def beside(folder: Path) -> dict[str, Any]:
    """The settings of the run: ``scorep.cfg`` as a mapping, ``manifest`` as the names that were set by hand."""
    metadata: dict[str, Any] = {}
    settings = _settings(_text(folder / "scorep.cfg"))
    if settings:
        metadata["scorep.cfg"] = settings
        metadata["plugins"] = plugins(settings)
    listed = [match[1] for line in _text(folder / "MANIFEST.md").splitlines() if (match := _LISTED.match(line))]
    if listed:
        metadata["manifest"] = listed
    return metadata


def plugins(settings: dict[str, str]) -> list[dict[str, Any]]:
    """Metric sources of a run: the plug-in (or PAPI, perf, rusage), its metrics, its interval settings."""
    described = []
    for name in _names(settings, "SCOREP_METRIC_PLUGINS"):
        prefix = f"SCOREP_METRIC_{name.upper()}"
        own = {key: value for key, value in settings.items() if key.startswith(f"{prefix}_")}
        intervals = {key: value for key, value in own.items() if _INTERVAL.search(key) and value}
        described.append({"name": name, "metrics": _names(settings, prefix), "intervals": intervals})
    for name in ("papi", "perf", "rusage"):
        metrics = _names(settings, f"SCOREP_METRIC_{name.upper()}")
        if metrics:
            described.append({"name": name, "metrics": metrics, "intervals": {}})
    return described


def _names(settings: dict[str, str], key: str) -> list[str]:
    separator = settings.get(f"{key}_SEP") or ","
    return [name.strip() for name in settings.get(key, "").split(separator) if name.strip()]


def _settings(text: str) -> dict[str, str]:
    settings = {}
    for line in text.splitlines():
        match = _SETTING.match(line)
        if match:
            settings[match[1]] = match[2].strip().strip("'")
    return settings


def _text(path: Path) -> str:
    if not path.is_file():  # a pipe would keep us waiting
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
