"""Annotations of verbs are read alike on every Python."""

from typing import Annotated, Optional

from wattribute.cli.hints import hints


def test_what_python_3_10_wraps_is_unwrapped():
    def verb(a: Optional[Annotated[Optional[str], "a"]], b: Annotated[list[str], "b"], c: int = 0) -> None: ...  # noqa: UP045

    assert hints(verb) == {
        "a": Annotated[Optional[str], "a"],  # noqa: UP045
        "b": Annotated[list[str], "b"],
        "c": int,
        "return": type(None),
    }
