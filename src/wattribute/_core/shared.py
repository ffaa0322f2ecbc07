"""Loader of the compiled library, without NumPy or pathlib, which a profiled program has no time to import."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

FIX = "install a C compiler, then: pip install --force-reinstall --no-deps --no-cache-dir wattribute"


def opened() -> ctypes.CDLL | None:
    """The library beside this file; None if the twin is asked for, or nothing was compiled for this machine.

    With ``WATTRIBUTE_REQUIRE_CORE=1`` the latter is an OSError.
    """
    if os.environ.get("WATTRIBUTE_CORE") == "reference":
        return None
    name = "libwattribute" + (".dylib" if sys.platform == "darwin" else ".so")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        if os.environ.get("WATTRIBUTE_REQUIRE_CORE", "0") not in ("", "0"):
            why = "was not compiled" if not os.path.exists(path) else f"cannot be loaded ({error})"
            text = f"the C core {why}, and WATTRIBUTE_REQUIRE_CORE asks for it; {FIX}"
            raise OSError(errno.ENOENT, text, path) from error
        return None
