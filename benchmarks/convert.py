"""An OTF2 archive converted to our own (Parquet), against Debian's libotf2 merely counting the events.

``python benchmarks/convert.py [--folder DIR] [--scale 10] [--repeats 3]``; archives are generated into the folder once.
"""

from __future__ import annotations

from helpers import archive, peer

OURS, LONG = "convert, 1 thread", "convert, 1 thread, {} times as many ranks"
BOUND_MB = 200


def main() -> None:
    given, small, big = peer.begin(__doc__)
    table = peer.Table(given.repeats)
    programs = peer.build(given.folder)
    for name, program in programs.items():
        table.row(f"libotf2 ({name}), count", lambda p=program: peer.run(p, big, "count"))
    ours = table.row(OURS, lambda: peer.work("convert", big, small))
    table.row("convert, 2 threads", lambda: peer.work("convert", big, small, 2))
    print(f"start-up and imports, not in the above: {ours['imports_s']:.2f} s")
    if "Debian" in programs:
        times = ours["cpu_s"] / table.best["libotf2 (Debian), count"]["cpu_s"]
        peer.verdict("against libotf2 (Debian) counting", f"{times:.2f}× CPU", "≤ 2.5×", times <= 2.5)
    _memory(ours, OURS)
    if given.scale:
        long = archive.generate(given.folder / f"wide{given.scale}", peer.RANKS * given.scale, peer.EVENTS)
        name = LONG.format(given.scale)
        _memory(table.row(name, lambda: peer.work("convert", long, small)), name)


def _memory(row: dict[str, float], name: str) -> None:
    """What is held follows the longest location, not their number."""
    peak = row["peak_bytes"] / 1e6
    peer.verdict(f"peak memory, {name}", f"{peak:.1f} MB over the interpreter", f"< {BOUND_MB} MB", peak < BOUND_MB)


if __name__ == "__main__":
    main()
