"""The baseline of a machine, the power of its devices at rest: one small file per host in the user's data folder.

``wattribute baseline`` writes it; every later recording on that host carries a copy, so that what is static in it does
not depend on where and when it is asked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..files import user_folder
from .accounting import reserved_part


def folder() -> Path:
    """Folder of the baselines."""
    return user_folder("DATA", "baselines")


def path_of(host: str) -> Path:
    return folder() / f"{re.sub(r'[^A-Za-z0-9._-]', '_', host) or 'host'}.json"


def of_host(host: str) -> dict[str, Any]:
    """The baseline of a host as it was saved, or nothing."""
    try:
        baseline = json.loads(path_of(host).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    good = isinstance(baseline, dict) and baseline.get("host") == host and isinstance(baseline.get("devices"), dict)
    return baseline if good else {}


def division(host: str) -> dict[str, Any]:
    """What a recording says of its machine so that energy can be divided: cores, the part reserved, power at rest."""
    floors = of_host(host)
    return {"cores": os.cpu_count() or 1, "reserved": reserved_part(), **({"floors": floors} if floors else {})}


def save(baseline: Mapping[str, Any]) -> Path:
    """Keep a baseline in place of an earlier one."""
    from ..files import write_file

    path = path_of(str(baseline["host"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(dict(baseline), indent=1) + "\n")
    return path
