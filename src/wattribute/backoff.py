"""Retry rules: which failures of a server are worth a retry, and after which pause."""

from __future__ import annotations

from dataclasses import dataclass

TEMPORARY_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})  # the same request may work later


@dataclass
class Backoff:
    """Pauses that double from ``first_s`` up to ``longest_s``; a server may ask for a longer one."""

    first_s: float
    longest_s: float = 30.0
    _next_s: float = 0.0

    def pause_s(self, asked_s: float = 0.0) -> float:
        """The pause before the next try."""
        pause = max(self.first_s, self._next_s)
        self._next_s = min(2 * pause, self.longest_s)
        return max(pause, min(asked_s, self.longest_s))

    def reset(self) -> None:
        """Begin again with the first pause."""
        self._next_s = 0.0
