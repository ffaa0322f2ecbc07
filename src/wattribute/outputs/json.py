"""JSON: ``{"devices": [...], "rows": [...], "problems": [...]}``, numbers in full."""

from __future__ import annotations

import json
from typing import Any

from ..model import Attribution
from .tables import emit, promised_devices, promised_rows


def text(attribution: Attribution) -> str:
    """The document, one device or row per line."""
    document = {
        "devices": promised_devices(attribution).to_dicts(),
        "rows": promised_rows(attribution).to_dicts(),
        "problems": [{"kind": p.kind, "message": p.message} for p in attribution.problems],
    }
    parts = []
    for name, rows in document.items():
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
        parts.append(f' "{name}": [\n  {lines}\n ]' if rows else f' "{name}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(attribution: Attribution, target: str, **options: Any) -> None:
    emit(text(attribution), target)
