"""A short run of the fuzzer; ``make fuzz`` makes a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import fuzzing


def test_damaged_files_do_no_harm(tmp_path: Path) -> None:
    program = fuzzing.build(tmp_path)
    if program is None:
        pytest.skip("no C compiler with the address and undefined-behaviour sanitizers here")
    fuzzing.seeds(tmp_path)
    done = fuzzing.run(program, tmp_path, files=100, seed=3)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "100 files read, none did harm\n"
