"""Small recordings that come with the package: what ``wattribute demo`` shows, and what tests can always read.

``tools/make_samples.py`` makes them; nothing in them was measured on a real machine, and their true energy is known.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent
SAMPLES = {
    "trace": "OTF2 archive of a GPU job: 2 nodes, 4 ranks, 4 GPUs, energy counters",
    "pytorch.json.gz": "PyTorch profile of a training loop on a GPU",
    "gpu.csv": "what nvidia-smi logged while that training ran",
    "run.watt": "recording of `wattribute run`: three regions, counters of CPU package and memory",
}


def path(name: str) -> Path:
    """The path of the sample ``name``, a key of ``SAMPLES``."""
    from ..errors import OptionError

    if name not in SAMPLES:
        raise OptionError.unknown("sample", name, SAMPLES)
    return FOLDER / name


def copy(folder: str | os.PathLike[str]) -> Path:
    """Copy all samples into a new ``folder`` and return its path."""
    import shutil

    from ..errors import OutputError

    target = Path(folder)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise OutputError(f"{target} exists: remove it, or name another folder")
    target.mkdir(parents=True, exist_ok=True)
    for name in SAMPLES:
        if path(name).is_dir():
            shutil.copytree(path(name), target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(path(name), target / name)
    return target
