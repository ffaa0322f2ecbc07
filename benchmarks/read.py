"""Reading an OTF2 archive into span and signal columns, against libotf2 and PyPI otf2.

``python benchmarks/read.py [--folder DIR] [--scale 10] [--repeats 3]``; archives are generated into the folder once.
"""

from __future__ import annotations

from helpers import archive, peer

MANY, FEW = 2048, 8_000  # 2,048 ranks and as many meters: 4,096 locations


def main() -> None:
    given, small, big = peer.begin(__doc__)
    many = archive.generate(given.folder / "many", MANY, FEW)
    table = peer.Table(given.repeats)
    programs = peer.build(given.folder)
    for name, program in programs.items():
        table.row(f"libotf2 ({name}), append in C", lambda p=program: peer.run(p, big, "append"))
    table.row("PyPI otf2, a slice", lambda: peer.work("pypi", big, small))
    ours = table.row("wattribute, 1 thread", lambda: peer.work("read", big, small))
    table.row("wattribute, 2 threads", lambda: peer.work("read", big, small, 2))
    table.row("wattribute, 4,096 locations", lambda: peer.work("read", many, small))
    print(f"start-up and imports, not in the above: {ours['imports_s']:.2f} s")
    for name in programs:
        table.ratio(f"than libotf2 ({name})", f"libotf2 ({name}), append in C", "wattribute, 1 thread", 2)
    table.ratio("than PyPI otf2", "PyPI otf2, a slice", "wattribute, 1 thread", 300, per_event=True)
    table.ratio("two threads than one", "wattribute, 1 thread", "wattribute, 2 threads", 1.4, by="wall_s")
    calls = peer.RANKS * peer.EVENTS
    each = ours["peak_bytes"] / calls
    peer.verdict("peak memory per enter or leave", f"{each:.1f} bytes", "≤ 40", each <= 40)
    slower = _per_event(table, "wattribute, 4,096 locations") / _per_event(table, "wattribute, 1 thread")
    peer.verdict("4,096 locations, CPU time per event", f"{slower:.2f}× the big archive's", "≤ 2.5×", slower <= 2.5)
    if given.scale:
        long = archive.generate(given.folder / f"wide{given.scale}", peer.RANKS * given.scale, peer.EVENTS)
        name = f"wattribute, {given.scale} times as long"
        table.row(name, lambda: peer.work("read", long, small))
        growth = _per_event(table, name) / _per_event(table, "wattribute, 1 thread")
        peer.verdict("linear", f"{growth:.2f}× the CPU time per event", "≤ 1.2×", growth <= 1.2)


def _per_event(table: peer.Table, name: str) -> float:
    return table.best[name]["cpu_s"] / table.best[name]["events"]


if __name__ == "__main__":
    main()
