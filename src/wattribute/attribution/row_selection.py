"""Which rows a question asks for, by process, host, location and frame.

Rows are chosen after sharing, so that a selection never changes what a row gets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Paths, Problem, Question, Recording
from ..model.select import pattern, unmatched
from .frame_keys import FrameKeys

Mask = npt.NDArray[np.bool_]


def location_mask(recording: Recording, question: Question) -> Mask:
    """Which locations the question asks for."""
    mask = np.ones(len(recording.locations), np.bool_)
    for wanted, names in (
        (question.process, _process_names),
        (question.host, lambda recording: recording.location_hosts),
        (question.location, lambda recording: recording.locations.name),
    ):
        if wanted is not None:
            mask &= [bool(pattern(wanted).search(name)) for name in names(recording)]
    return mask


def chosen_lines(locations: Mask, question: Question, keys: FrameKeys, long: Any, paths: Paths | None) -> Mask:
    """Which lines of the long table (one per location, device and row) the question asks for; see location_mask."""
    if not question.selects_rows:
        return np.ones(len(long["row"]), np.bool_)
    code = long["row"] if paths is None or not len(paths) else keys.code[paths.frame][long["row"]]
    mask: Mask = locations[long["location"]] & keys.chosen[code]
    return mask


def unmatched_words(recording: Recording, question: Question) -> list[Problem]:
    """One problem per regular expression that matches nothing."""
    return [
        *unmatched("process", _process_names(recording), question.process),
        *unmatched("host", recording.location_hosts, question.host),
        *unmatched("location", recording.locations.name, question.location),
        *unmatched("frame", recording.frames.name, question.frame),
    ]


def _process_names(recording: Recording) -> list[str]:
    return [recording.processes.name[owner] if owner >= 0 else "" for owner in recording.owners]
