"""Write every error, problem and warning of the package into ``tests/data/messages.txt``, to be read in one go.

``make docs`` runs it; ``tests/test_messages.py`` fails where the list is not that of the code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "wattribute"
MESSAGES = ROOT / "tests" / "data" / "messages.txt"
SKIPPED = ("testing/",)  # speaks to people who write tests
WRITES = ("Problem", "problem", "warn", "unknown")


def is_message(call: ast.Call) -> bool:
    """Whether a call makes an error or a problem, or prints on standard error."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    to_stderr = any(word.arg == "file" and "stderr" in ast.unparse(word.value) for word in call.keywords)
    return name.endswith("Error") or name in WRITES or (name == "print" and to_stderr)


def texts(node: ast.AST) -> Iterator[str]:
    """The text of a message; what is filled in stands in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"  # type: ignore[attr-defined]
            for part in node.values
        )
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.BinOp):
        yield " … ".join([*texts(node.left), *texts(node.right)])


def messages() -> str:
    """All messages by module, in the order of the source."""
    blocks = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if module.startswith(SKIPPED):
            continue
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        calls.sort(key=lambda call: (call.lineno, call.col_offset))
        lines = [text for call in calls if is_message(call) for word in call.args for text in texts(word)]
        lines = [" ".join(line.split()) for line in lines if " " in line.strip()]
        if lines:
            blocks.append("\n".join([f"## {module}", *dict.fromkeys(lines)]))
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    MESSAGES.write_text(messages())
