"""``--live-plot``: ``metrics_plot.png`` drawn again while a run goes on, by a process of its own.

An observer of the run: the sampler's first status names the folder, and starts the process. That reads the journal,
which the sampler flushes every second, and replaces the picture as a whole; neither sampler nor run waits for it. It
is nice, and rests twenty times as long as it drew, so that the picture costs less than a twentieth of a core.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from ..errors import WattributeError
from ..model.status import Status
from .result_files import PLOT, write_plot

REST_S = 5.0  # at least, between two pictures
REST_SHARE = 20
FIRST_S = 1.0  # a journal that has nothing to draw yet is looked at again soon


class LivePlot:
    """Use as a context manager; call with each status."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path()

    def __enter__(self) -> LivePlot:
        return self

    def __call__(self, status: Status) -> None:
        if self._process is None:
            self._folder = Path(status.folder)
            command = [sys.executable, "-m", __name__, str(self._folder)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._process.kill()  # the signals that could be caught are held back while a run goes on
        self._process.communicate()
        for half in self._folder.glob(f".{PLOT}.*"):
            half.unlink(missing_ok=True)


def main(folder: Path) -> None:
    """Draw until standard input closes, which it does when whoever wants the picture is gone."""
    from ..readers.journal import recover

    os.nice(10)
    rest_s = 0.0
    while not select.select([0], [], [], rest_s)[0]:
        began_s = time.process_time()
        rest_s = FIRST_S
        with contextlib.suppress(WattributeError, OSError, ValueError):  # nothing to draw yet, or just ended
            write_plot(recover(folder), folder)
            rest_s = max(REST_S, REST_SHARE * (time.process_time() - began_s))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
