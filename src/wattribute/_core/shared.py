"""The compiled library, opened: without NumPy, which the sampler's process has no time to import."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path


def opened() -> ctypes.CDLL | None:
    """The library beside this file; None if nothing was compiled, or the twin is asked for."""
    path = Path(__file__).with_name("libwattribute" + (".dylib" if sys.platform == "darwin" else ".so"))
    if os.environ.get("WATTRIBUTE_CORE") == "reference" or not path.exists():
        return None
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # built for another machine
        return None
