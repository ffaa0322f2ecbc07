"""Rich's console, but a line never breaks between a number and its unit."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

_UNITS = r"(?:[pnµmkMGTP]?(?:J|Wh|W|s|g|B)|[KMGTP]iB|[kMGTP]|%|°C|min|h)"
GAP = re.compile(rf"(?<=\d) (?={_UNITS}(?:[\s/),.;:]|$))")  # between a number and its unit
_GLUE = "\ue000"  # for private use, one column wide; Rich breaks lines at U+00A0 too


class Console(RichConsole):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if not isinstance(renderable, Text) or not GAP.search(renderable.plain):
            yield from super().render(renderable, options)
            return
        glued = renderable.copy()
        glued.plain = GAP.sub(_GLUE, glued.plain)
        for segment in super().render(glued, options):
            yield segment._replace(text=segment.text.replace(_GLUE, " "))
