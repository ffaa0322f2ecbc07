"""Exact sums of floats by group: the same bits in any order, and in any number of steps.

A sum is a list of columns (*components*) whose exact sum it is; the first is the sum rounded to nearest, as
``math.fsum`` rounds it. Sums of parts are summed in the same way, so workers can reduce what they have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Components = list[Floats]

_SCALE_ABOVE, _SCALE_BITS = (
    2.0**900,
    200,
)  # larger numbers are scaled by 2^-200 first, so that nothing overflows on the way


def sums(addends: Sequence[Floats], group: Ints, size: int) -> Components:
    """The sum of each group; ``addends`` are the components of each line, ``group`` the group of each line."""
    most = int(np.bincount(group, minlength=1).max()) * len(addends) if len(group) else 0
    if most <= 1:
        whole = np.zeros(size)
        if most:
            whole[group] = addends[0]
        return [whole]
    rest = np.concatenate(addends) if len(addends) > 1 else addends[0]
    group = np.tile(group, len(addends)) if len(addends) > 1 else group
    finite = np.isfinite(rest)
    if finite.all():
        return _finite(rest, group, size, most)
    totals = _finite(np.where(finite, rest, 0.0), group, size, most)
    totals[0] = totals[0] + np.bincount(group, np.where(finite, 0.0, rest), size)
    return totals


def rounded(components: Components) -> Floats:
    """The sum as one column, rounded to nearest."""
    return components[0]


def _finite(rest: Floats, group: Ints, size: int, most: int) -> Components:
    """Slices of equal weight are cut off all addends at once; their sums have no rounding errors.

    With σ = 1.5 · 2^k the difference (x + σ) − σ is x rounded to a multiple of 2^(k−52), and ``most`` of them add up to
    less than 2^53 such multiples.
    """
    terms: Components = []
    room = most.bit_length() + 1
    rest, slice_ = rest.astype(np.float64), np.empty(len(rest))
    while (top := max(float(rest.max()), -float(rest.min()))) > 0:
        if top > _SCALE_ABOVE:
            return [np.ldexp(term, _SCALE_BITS) for term in _finite(np.ldexp(rest, -_SCALE_BITS), group, size, most)]
        sigma = float(np.ldexp(1.5, int(np.frexp(top)[1]) + room))
        np.subtract(np.add(rest, sigma, out=slice_), sigma, out=slice_)
        terms.append(np.bincount(group, slice_, size).astype(np.float64, copy=False))
        rest -= slice_
    return _normal(terms) if terms else [np.zeros(size)]


def _normal(terms: Components) -> Components:
    """The same sum with each component rounded to nearest, as far as the ones before leave it."""
    moved = True
    while moved:
        moved = False
        for i in range(len(terms) - 1, 0, -1):
            above, below = terms[i - 1], terms[i]
            whole = above + below
            part = whole - above
            terms[i - 1], terms[i] = whole, (above - (whole - part)) + (below - part)
            moved |= bool((whole != above).any())
    if len(terms) > 2:  # half a unit in the last place: what is below decides
        turn = terms[1] * 2
        turns = (np.sign(terms[1]) * np.sign(terms[2]) > 0) & ((terms[0] + turn) - terms[0] == turn)
        terms[0] = np.where(turns, terms[0] + turn, terms[0])
        terms[1] = np.where(turns, -terms[1], terms[1])
    return [terms[0], *(term for term in terms[1:] if term.any())]
