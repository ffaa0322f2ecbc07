"""JSON: ``{"about": {...}, "devices": [...], "rows": [...], "problems": [...]}``, numbers in full."""

from __future__ import annotations

import json
from typing import Any

from ..model import Answer
from .tables import about, emit, promised_devices, promised_rows

SUFFIXES = (".json",)
SEVERAL_RUNS = True


def text(attribution: Answer) -> str:
    """The document, one device or row per line."""
    document = {
        "devices": promised_devices(attribution).to_dicts(),
        "rows": promised_rows(attribution).to_dicts(),
        "problems": [{"kind": p.kind, "message": p.message} for p in attribution.problems],
    }
    head = {"by": list(attribution.by), "unit": attribution.unit, **about(attribution)}
    parts = [f' "about": {json.dumps(head, ensure_ascii=False)}']
    for name, rows in document.items():
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
        parts.append(f' "{name}": [\n  {lines}\n ]' if rows else f' "{name}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(attribution: Answer, target: str, **options: Any) -> None:
    emit(text(attribution), target)
