"""What memray wrote of a program's allocations → the lines that held most at the peak.

``stacks`` starts memray where it is installed and memory is asked for; ``stack_files`` keeps what is read here with
the recording, so that a reader needs neither memray nor its files.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

MOST = 200  # lines that are kept
_MACHINERY = "<frozen importlib"  # an import is the work of the line that imports
_OURS = str(Path(__file__).parents[1] / "recorders")


def held(folder: Path) -> list[list[Any]]:
    """[function, file, line, bytes, allocations] at each process's peak, the largest first; [] without memray."""
    paths = sorted(folder.glob("*.memray"))
    if not paths:
        return []
    try:
        from memray import FileReader
    except ImportError:
        return []
    sums: dict[tuple[str, str, int], list[int]] = {}
    for path in paths:
        with suppress(OSError, ValueError, RuntimeError), FileReader(path) as file:  # cut by a kill
            for record in file.get_high_watermark_allocation_records(merge_threads=True):
                line = _line(record.stack_trace())
                if line[1].startswith(_OURS):
                    continue
                entry = sums.setdefault(line, [0, 0])
                entry[0] += record.size
                entry[1] += record.n_allocations
    rows: list[list[Any]] = [[*line, *amounts] for line, amounts in sums.items()]
    return sorted(rows, key=lambda row: -row[3])[:MOST]


def _line(stack: list[tuple[str, str, int]]) -> tuple[str, str, int]:
    """Return the innermost line outside the import machinery."""
    for function, file, line in stack:
        if not file.startswith(_MACHINERY):
            return function, file, line
    return "(outside Python)", "", 0
