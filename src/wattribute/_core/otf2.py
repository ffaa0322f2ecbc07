"""OTF2 event files → columns: the C decoder when it was compiled, else its Python twin.

One call reads one location's files; it holds no lock and no Python object while it works, so threads run side by side.
"""

from __future__ import annotations

from .records import FIRST_KIND, KINDS, Files, Tables
from .reference_otf2 import busy, decode, events, fold

__all__ = ["FIRST_KIND", "KINDS", "Files", "Tables", "busy", "decode", "events", "fold"]
