"""Which rank of a parallel job an environment belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .launchers import JOB, LOCAL, RANK, SIZE


@dataclass(frozen=True)
class Rank:
    """This process among those of its job; −1 where the launcher does not say."""

    rank: int
    size: int = -1
    local_rank: int = -1
    job: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def rank_of(environment: Mapping[str, str] | None = None) -> Rank | None:
    """The rank an environment describes; None outside a parallel job."""
    given = os.environ if environment is None else environment
    rank = _number(given, RANK)
    size = _number(given, SIZE)
    # a batch script inside a Slurm allocation has SLURM_PROCID=0 and is no rank, but `srun -n 1` looks just like it
    if rank < 0 or (size <= 1 and RANK[3] in given and _number(given, RANK[:3]) < 0):
        return None
    return Rank(rank, size, _number(given, LOCAL), next((given[name] for name in JOB if given.get(name)), ""))


def _number(environment: Mapping[str, str], names: tuple[str, ...]) -> int:
    for name in names:
        text = environment.get(name, "")
        if text.isdigit():
            return int(text)
    return -1
