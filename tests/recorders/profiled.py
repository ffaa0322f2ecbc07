"""Python programs run as ``wattribute profile`` runs them, under a replayed meter of constant power."""

import os
import subprocess
import sys
import textwrap

import wattribute
from wattribute.model import Clock, Recording
from wattribute.readers import stack_files
from wattribute.recorders.stacks import Profiling, environment


def files(folder, code, mode="sample", python=sys.executable, arguments=(), script=None, variables=(), **how):
    """Run code in a Python that joins; its parts lie in folder/parts."""
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    path = script or folder / "program.py"
    path.write_text(textwrap.dedent(code))
    base = {name: value for name, value in os.environ.items() if not name.startswith("WATTRIBUTE")}
    base |= dict(variables)
    order = environment(Profiling(mode, **how), str(parts), base)
    done = subprocess.run([python, str(path), *arguments], env=order, capture_output=True, text=True, cwd=folder)
    return done, parts


def joined(parts):
    """The recording of what was written."""
    return stack_files.join(Recording(clock=Clock(epoch_ns=0)), parts, stack_files.profiled_processes(parts))


def profiled(folder, code, mode="sample", **how):
    done, parts = files(folder, code, mode, **how)
    assert done.returncode == 0, done.stderr
    return joined(parts)


def spans(recording, location=0):
    """(frame, depth, resumed) of a location's spans in the program itself, in the order they began."""
    columns = recording.spans.spans(location)
    frames = recording.frames
    return [
        (frames.name[f], int(d), bool(r))
        for f, d, r in zip(columns.frame, columns.depth, columns.resumed, strict=True)
        if frames.file[f].endswith("program.py")
    ]


def calls(recording):
    """How often each function of the program was called, in all locations."""
    found = {}
    for location in recording.spans.locations():
        for name, _, resumed in spans(recording, location):
            found[name] = found.get(name, 0) + (not resumed)
    return found


def seconds(recording):
    """Self seconds per function of the program."""
    found = {}
    for location in recording.spans.locations():
        columns = recording.spans.spans(location)
        own = (columns.end - columns.start).astype(float)
        for row, parent in enumerate(columns.parent):
            if parent >= 0:
                own[parent] -= columns.end[row] - columns.start[row]
        for frame, length in zip(columns.frame, own, strict=True):
            name = recording.frames.name[frame]
            found[name] = found.get(name, 0.0) + length / 1e9
    return found


def constant_power(path, watts=100.0, rate_s=0.01, length_s=600.0):
    """A replayed counter that rises by so many watts; gives the meter's name."""
    rows = (f"{i * rate_s:.3f},{i * rate_s * watts:.6f}" for i in range(int(length_s / rate_s)))
    path.write_text("time_s,package 0:energy_j\n" + "\n".join(rows) + "\n")
    return f"replay:{path}"


def rows(recording, **options):
    """Function → its row, of the program's own file, and the books of the only device."""
    found = wattribute.functions(recording, **options)
    mine = [row for row in found.rows.to_dicts() if row["file"].endswith("program.py")]
    return {row["frame"]: row for row in mine}, found.devices.to_dicts()[0], found
