"""One class name, one concept: public classes of the package have names of their own."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "wattribute"
MAY_REPEAT: dict[str, str] = {}  # name → reason


def test_public_class_names_do_not_repeat():
    homes = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    repeated = {name: places for name, places in homes.items() if len(places) > 1 and name not in MAY_REPEAT}
    assert repeated == {}
