"""From an OTF2 archive to energy per process and frame in one pass, against libotf2 merely counting the events.

``python benchmarks/fused.py [--folder DIR] [--scale 10] [--repeats 3]``; archives are generated into the folder once.
"""

from __future__ import annotations

from helpers import archive, peer

ONE, SHARED, BY_PATH = (
    "one user per counter, no bounds",
    "shared counter, bounds",
    "shared counter, bounds, by call path",
)
NUMPY, FLOOR = "shared counter, bounds, decoded, then NumPy", "read() of the files"
BOUND_MB = 100


def main() -> None:
    given, small, big = peer.begin(__doc__)
    table = peer.Table(given.repeats)
    programs = peer.build(given.folder)
    for name, program in programs.items():
        table.row(f"libotf2 ({name}), count", lambda p=program: peer.run(p, big, "count"))
    table.row(FLOOR, lambda: peer.work("floor", big, small))
    ours = table.row(ONE, lambda: peer.work("one_user", big, small))
    table.row(SHARED, lambda: peer.work("shared", big, small))
    table.row(BY_PATH, lambda: peer.work("shared_by_path", big, small))
    table.repeats = 1
    table.row(NUMPY, lambda: peer.work("shared_numpy", big, small))
    table.repeats = given.repeats
    print(f"start-up and imports, not in the above: {ours['imports_s']:.2f} s")
    for name in programs:
        table.ratio(f"one user than libotf2 ({name}) counting", f"libotf2 ({name}), count", ONE, 2)
        table.ratio(f"shared counter than libotf2 ({name}) counting", f"libotf2 ({name}), count", SHARED, 1)
    table.ratio("shared counter than decode-then-NumPy", NUMPY, SHARED, 3)
    _at_most(table, "shared counter against read()", SHARED, FLOOR, 15)
    _at_most(table, "by call path against by frame", BY_PATH, SHARED, 1.7)
    _memory(table, SHARED)
    if given.scale:
        long = archive.generate(given.folder / f"long{given.scale}", peer.RANKS, peer.EVENTS * given.scale)
        name = f"shared counter, bounds, {given.scale} times as long"
        table.row(name, lambda: peer.work("shared", long, small))
        _memory(table, name)


def _at_most(table: peer.Table, what: str, ours: str, other: str, most: float) -> None:
    times = [table.best[ours][key] / table.best[other][key] for key in ("wall_s", "cpu_s")]
    peer.verdict(what, f"{times[0]:.2f}× wall, {times[1]:.2f}× CPU", f"≤ {most:g}×", times[1] <= most)


def _memory(table: peer.Table, name: str) -> None:
    peak = table.best[name]["peak_bytes"] / 1e6
    peer.verdict(f"peak memory, {name}", f"{peak:.1f} MB over the interpreter", f"< {BOUND_MB} MB", peak < BOUND_MB)


if __name__ == "__main__":
    main()
