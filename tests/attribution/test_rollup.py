"""Groups of lines by number are those that NumPy finds row by row."""

from __future__ import annotations

import numpy as np
import pytest

from wattribute.attribution.rollup import _groups


@pytest.mark.parametrize("columns", [1, 3, 6])  # six of 10^4 values: more combinations than a number of 64 bits has
@pytest.mark.parametrize("values", [3, 10_000])
def test_groups_are_those_of_rows(columns, values):
    random = np.random.default_rng(columns)
    lines = np.concatenate([np.arange(values), random.integers(-values, values, 20_000)])
    table = [np.append(lines, lines[:500])[random.permutation(len(lines) + 500)] for _ in range(columns)]
    table = [np.concatenate([column, column[:100]]) for column in table]
    _, first, group = np.unique(np.stack(table, axis=1), axis=0, return_index=True, return_inverse=True)
    found = _groups(table, len(table[0]))
    np.testing.assert_array_equal(found[0], first)
    np.testing.assert_array_equal(found[1], group.reshape(-1))
