"""The array verbs that ``arrays`` is written in, and NumPy's form of them; ``arkouda`` has its own.

An array of either kind can be added, compared, sliced (``a[1:]``), gathered (``a[places]``), filtered (``a[mask]``) and
assigned to (``a[places] = b``); everything else is a verb. Integers are int64, numbers float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
COLUMNS = ("start", "end", "frame", "parent", "resumed")


class Verbs(Protocol):
    """What differs between kinds of arrays."""

    def put(self, array: Numbers) -> Any:
        """An array of this kind from one of NumPy's."""
        ...

    def get(self, array: Any) -> Numbers:
        """An array of NumPy's from one of this kind: for small results only."""
        ...

    def read(self, files: Sequence[Path]) -> dict[str, Any]:
        """COLUMNS of Parquet files, one file after the other."""
        ...

    def arange(self, count: int) -> Any: ...
    def zeros(self, count: int, like: type) -> Any: ...
    def where(self, condition: Any, yes: Any, no: Any) -> Any: ...
    def join(self, arrays: Sequence[Any]) -> Any: ...
    def cumsum(self, array: Any) -> Any: ...
    def search(self, sorted_: Any, values: Any, side: str) -> Any:
        """``searchsorted``."""
        ...

    def order(self, first: Any, second: Any) -> Any:
        """Places that sort by the first key, then by the second; no pair of keys comes twice."""
        ...

    def distinct(self, keys: Any) -> tuple[Numbers, Any]:
        """The distinct keys, in NumPy, and for each element which of them it is."""
        ...

    def sums(self, code: Any, size: int, columns: Sequence[Any]) -> list[Numbers]:
        """Per code below ``size`` the sum of each column, in NumPy."""
        ...

    def any(self, mask: Any) -> bool: ...
    def free_bytes(self) -> int | None:
        """Memory for further arrays; None where nothing limits it but the machine."""
        ...


class NumPy:
    """The verbs in this process."""

    def put(self, array: Numbers) -> Numbers:
        return np.array(array)

    def get(self, array: Numbers) -> Numbers:
        return array

    def read(self, files: Sequence[Path]) -> dict[str, Numbers]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.concat_tables([pq.read_table(file, columns=list(COLUMNS)) for file in files])
        columns = {name: table.column(name).to_numpy() for name in COLUMNS}
        return {name: column if name == "resumed" else column.astype(np.int64) for name, column in columns.items()}

    def arange(self, count: int) -> Numbers:
        return np.arange(count)

    def zeros(self, count: int, like: type) -> Numbers:
        return np.zeros(count, like)

    def where(self, condition: Any, yes: Any, no: Any) -> Numbers:
        return np.asarray(np.where(condition, yes, no))

    def join(self, arrays: Sequence[Any]) -> Numbers:
        return np.asarray(np.concatenate(arrays))

    def cumsum(self, array: Any) -> Numbers:
        return np.asarray(np.cumsum(array))

    def search(self, sorted_: Any, values: Any, side: str) -> Numbers:
        return np.asarray(np.searchsorted(sorted_, values, side="left" if side == "left" else "right"))

    def order(self, first: Any, second: Any) -> Numbers:
        return np.asarray(np.lexsort((second, first)))

    def distinct(self, keys: Any) -> tuple[Numbers, Numbers]:
        return np.unique(keys, return_inverse=True)

    def sums(self, code: Any, size: int, columns: Sequence[Any]) -> list[Numbers]:
        totals = []
        for column in columns:
            sums = np.zeros(size, column.dtype if column.dtype.kind == "f" else np.int64)
            np.add.at(sums, code, column)
            totals.append(sums)
        return totals

    def any(self, mask: Any) -> bool:
        return bool(np.any(mask))

    def free_bytes(self) -> int | None:
        return None
