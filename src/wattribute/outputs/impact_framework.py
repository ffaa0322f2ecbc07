"""A manifest of the Impact Framework (``if-run`` of @grnsft/if), from which it computes the same SCI.

An observation per slice of time with one intensity: energy, PUE, intensity, the hardware's share, and how many units
of work the whole run did. Each observation's ``sci`` is its part of the run's, so that they add up.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from ..carbon.sci_factors import YEAR_S, Sci, sci
from ..model import Attribution
from ..units import J_PER_KWH
from .tables import emit

SUFFIXES = (".if.yml", ".if.yaml")
_LEAST_S = 1.0  # of an observation: if-run refuses shorter ones; nothing is computed from it


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Write the manifest; ``zone``, ``intensity`` and ``site`` are those of :func:`wattribute.carbon.sci`."""
    known = {name: options[name] for name in ("zone", "intensity", "site") if name in options}
    emit("\n".join(_lines(manifest(sci(attribution, **known), attribution))) + "\n", target)


def manifest(sci: Sci, attribution: Attribution) -> dict[str, Any]:
    """The manifest as plain values."""
    site, emitted = sci.site, sci.emissions
    wall_clock = attribution.recording.clock.epoch_ns is not None
    name = str(attribution.recording.metadata.get("name", "run"))
    sources = (sci.energy_kwh, sci.g_per_kwh, sci.embodied_g, sci.count)
    return {
        "name": name,
        "description": f"SCI {sci.sci!r} g CO2e per {sci.per}, by wattribute",
        "tags": {
            "unit": sci.per,
            **{f"{key}-source": one.source for key, one in zip("EIMR", sources, strict=True)},
            **{f"{key}-uncertainty": one.uncertainty for key, one in zip("EIMR", sources, strict=True)},
        },
        "initialize": {"plugins": _plugins(sci.per)},
        "aggregation": {"metrics": ["carbon", "sci"], "type": "both"},
        "tree": {
            "children": {
                "run": {
                    "pipeline": {"compute": ["facility", "operational", "embodied", "carbon", "sci"]},
                    "inputs": [
                        {
                            "timestamp": _iso(part.start_ns if wall_clock else 0),
                            "duration": max(_LEAST_S, (part.end_ns - part.start_ns) / 1e9),
                            "energy-machine": part.energy_j / J_PER_KWH,
                            "pue": emitted.pue,
                            "grid/carbon-intensity": part.g_per_kwh,
                            "device/emissions-embodied": 1000 * (site.embodied_kg or 0.0),
                            "device/time-share": (part.end_ns - part.start_ns) / 1e9 / (site.lifetime_years * YEAR_S),
                            "device/resource-share": site.embodied_share,
                            "functional-units": sci.count.value,
                        }
                        for part in emitted.slices
                    ],
                }
            }
        },
    }


def _plugins(per: str) -> dict[str, Any]:
    def builtin(method: str, inputs: list[str], output: str) -> dict[str, Any]:
        config = {"input-parameters": inputs, "output-parameter": output}
        return {"method": method, "path": "builtin", "config": config}

    embodied = ["device/emissions-embodied", "device/time-share", "device/resource-share"]
    added = {"unit": f"g CO2e per {per}", "description": "part of the run's SCI"}
    added["aggregation-method"] = {"time": "sum", "component": "sum"}  # type: ignore[assignment]
    return {
        "facility": builtin("Multiply", ["energy-machine", "pue"], "energy"),
        "operational": builtin("Multiply", ["energy", "grid/carbon-intensity"], "carbon-operational"),
        "embodied": builtin("Multiply", embodied, "carbon-embodied"),
        "carbon": builtin("Sum", ["carbon-operational", "carbon-embodied"], "carbon"),
        "sci": {
            "method": "Sci",
            "path": "builtin",
            "config": {"functional-unit": "functional-units"},
            "parameter-metadata": {"outputs": {"sci": added}},
        },
    }


def _iso(ns: int) -> str:
    at = datetime.fromtimestamp(ns // 10**9, timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ns // 10**6 % 1000:03d}Z"


def _lines(value: Any, indent: str = "") -> list[str]:
    """YAML of mappings, lists and plain values, which are written as JSON."""
    lines: list[str] = []
    pairs = value.items() if isinstance(value, dict) else (("-", one) for one in value)
    for key, inner in pairs:
        head = f"{indent}-" if key == "-" and isinstance(value, list) else f"{indent}{key}:"
        if isinstance(inner, dict | list) and inner:
            lines += [head, *_lines(inner, indent + "  ")]
        else:
            lines.append(f"{head} {json.dumps(inner, ensure_ascii=False)}")
    return lines
