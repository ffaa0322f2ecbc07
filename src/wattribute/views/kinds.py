"""Kinds of work, and one colour for each: the same in every chart, page and table.

A frame's kind follows from its paradigm and role, and where those say too little from well-known names and from where
it runs: what fills a GPU's stream is a kernel, although some tools call it a function like any other. The colours
are Okabe and Ito's: safe for colour-blind readers, distinct in grey. No dependencies, so that anything may import it.
"""

from __future__ import annotations

import colorsys
import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Frames

# kind → (what a legend calls it, colour); the order is that of legends and stacks
KINDS: dict[str, tuple[str, str]] = {
    "user": ("user code", "#0072B2"),
    "kernel": ("GPU kernels", "#D55E00"),
    "mpi": ("communication", "#E69F00"),
    "copy": ("copies", "#56B4E9"),
    "memory": ("memory", "#009E73"),
    "wait": ("waiting", "#CC79A7"),
    "io": ("I/O", "#F0E442"),
    "other": ("other", "#7F7F7F"),
    "others": ("other processes", "#882255"),
    "static": ("static", "#B8B08D"),
    "idle": ("idle", "#D9D9D9"),
}

_BY_ROLE = {
    "kernel": "kernel",
    "copy": "copy",
    "data_transfer": "copy",
    "barrier": "wait",
    "implicit_barrier": "wait",
    "task_wait": "wait",
    "wait": "wait",
    "critical": "wait",
    "ordered": "wait",
    "thread_wait": "wait",
    "allocate": "memory",
    "deallocate": "memory",
    "reallocate": "memory",
    "file_io": "io",
    "file_io_metadata": "io",
    "io": "io",
    "idle": "idle",
    "other_processes": "others",
    "static": "static",
}
_BY_PARADIGM = {
    "mpi": "mpi",
    "shmem": "mpi",
    "gaspi": "mpi",
    "upc": "mpi",
    "pgas": "mpi",
    "io": "io",
    "cuda": "other",
    "hip": "other",
    "opencl": "other",
    "openacc": "other",
    "measurement_system": "other",
}
# Tried in order on names that the role does not decide; the first match wins. Whole names unless they end in ".*".
_BY_NAME = tuple(
    (re.compile(pattern, re.IGNORECASE), found)
    for pattern, found in (
        (r"(nccl|rccl|oneccl).*", "mpi"),
        (r"mpi_(barrier|i?barrier|wait|probe|test).*", "wait"),
        (r"(hip|cu|cuda|cl)[a-z_]*(synchroni[sz]e|waitevent|waitforevents|finish).*", "wait"),
        (r"pthread_(join|cond_wait|cond_timedwait|mutex_lock|barrier_wait)|sem_wait|(nano|u|time\.)?sleep", "wait"),
        (r"(hip|cu|cuda)[a-z_]*mem(cpy|copy).*|clenqueue(read|write|copy).*|mem(cpy|move)", "copy"),
        (r"(hip|cu|cuda)[a-z_]*(malloc|free|mem_?alloc|memset).*", "memory"),
        (r"(m|c|re)alloc|free|memset|operator (new|delete)(\[\])?", "memory"),
        (r"mpi_file_.*|f?(open|read|write|close|sync)|p?(read|write)v?(64)?", "io"),
    )
)


def kind(paradigm: str, role: str, name: str = "", on: str = "") -> str:
    """The kind of work of a frame: a key of KINDS.

    ``on`` says where it ran, if known: the kind of its location ("gpu") or the view that counts it ("kernels").
    """
    frame_kind = _kind_anywhere(paradigm, role, name)
    on_gpu = bool(on) and {"gpu", "kernels", "copies"}.issuperset(on.split(","))
    return "kernel" if on_gpu and frame_kind in ("user", "other") else frame_kind


def _kind_anywhere(paradigm: str, role: str, name: str) -> str:
    paradigm, role = _word(paradigm), _word(role)
    communicates = role == "kernel" and _BY_NAME[0][0].fullmatch(name)
    if role in _BY_ROLE and not communicates:
        return _BY_ROLE[role]
    for pattern, kind in _BY_NAME:
        if pattern.fullmatch(name):
            return kind
    return _BY_PARADIGM.get(paradigm, "user")


@lru_cache
def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower())


def kinds(frames: Frames, on: str = "") -> list[str]:
    """The kind of each frame of a recording, row by row, wherever it ran or ``on`` such a place."""
    return [kind(*row, on) for row in zip(frames.paradigm, frames.role, frames.name, strict=True)]


def kinds_by_name(frames: Frames, on: str = "") -> dict[str, str]:
    """The kind of work by frame name; of two frames of one name the first counts."""
    return dict(reversed(list(zip(frames.name, kinds(frames, on), strict=True))))


def colour(kind: str) -> str:
    """The colour of a kind of work."""
    return KINDS.get(kind, KINDS["other"])[1]


def shade(kind: str, name: str) -> str:
    """The kind's colour, a little lighter or darker by a stable hash of the name: a function keeps its shade."""
    return _shade(kind, zlib.crc32(name.encode("utf-8", "replace")) % 7 - 3)


@lru_cache
def _shade(kind: str, step: int) -> str:
    red, green, blue = (int(colour(kind)[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    light = min(0.82, max(0.22, light + 0.035 * step))
    return "#" + "".join(f"{round(255 * part):02X}" for part in colorsys.hls_to_rgb(hue, light, saturation))


def own_colour(name: str) -> str:
    """A colour by a stable hash of the name alone: the same in every chart, with any others beside it."""
    number = zlib.crc32(name.encode("utf-8", "replace"))
    hue, light = number % 360 / 360, 0.36 + number // 360 % 5 * 0.07
    return "#" + "".join(f"{round(255 * part):02X}" for part in colorsys.hls_to_rgb(hue, light, 0.6))


def ink(background: str) -> str:
    """Black or white, whichever reads better on this colour (WCAG contrast)."""
    parts = [int(background[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#FFFFFF"
