"""MIG instances of an NVIDIA card: on which of them processes are, how busy each is, and its part of the card.

A card in MIG mode has one counter of energy and tells nothing of single processes. Its performance monitor (GPM, from
Hopper on) tells the utilisation of each instance; ``MigCard`` divides the card by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple


class MigInstance(NamedTuple):
    """A GPU instance: its handle and number, and how many slices of the card it has."""

    handle: Any
    number: int
    slices: int


class MigCard:
    """A card in MIG mode; ``ask`` calls a function of ``nvml`` and gives None where the driver has no answer."""

    def __init__(self, nvml: Any, ask: Callable[..., Any], handle: Any) -> None:
        self._nvml, self._ask, self._handle = nvml, ask, handle
        self.slices = ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0
        self.instances: list[MigInstance] = []
        self._samples: dict[int, Any] = {}  # of each instance the last one
        for index in range(self.slices):
            instance = ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
            if instance is not None:
                number = ask("nvmlDeviceGetGpuInstanceId", instance)
                slices = getattr(ask("nvmlDeviceGetAttributes", instance), "gpuInstanceSliceCount", 0)
                self.instances.append(MigInstance(instance, -1 if number is None else number, slices))
        support = ask("nvmlGpmQueryDeviceSupport", handle)
        self.is_monitored = bool(getattr(support, "isSupportedDevice", 0)) and all(
            instance.number >= 0 and instance.slices for instance in self.instances
        )

    @classmethod
    def of(cls, nvml: Any, ask: Callable[..., Any], handle: Any) -> MigCard | None:
        """The card of a handle, or None if it is not in MIG mode."""
        return cls(nvml, ask, handle) if (ask("nvmlDeviceGetMigMode", handle) or [0])[0] == 1 else None

    def busy_share(self, pids: Collection[int]) -> float | None:
        """The part of the card's busy slices, since the last call, on which these processes are.

        None at the first call, while nothing works, and where the driver does not tell.
        """
        if not self.is_monitored:
            return None
        busy = {one.number: one.slices * (self._utilisation(one.number) or 0.0) for one in self._distinct()}
        whole = sum(busy.values())
        return sum(busy[one.number] for one in self._own(pids)) / whole if whole else None

    def slice_share(self, pids: Collection[int]) -> float:
        """The part of the card's slices on which these processes are."""
        return sum(one.slices for one in self._own(pids)) / self.slices

    def _own(self, pids: Collection[int]) -> list[MigInstance]:
        return [one for one in self._distinct() if any(pid in pids for pid in self._pids(one.number))]

    def _distinct(self) -> list[MigInstance]:
        """One instance per number: compute instances share the slices of their GPU instance."""
        return list({instance.number: instance for instance in self.instances}.values())

    def _pids(self, number: int) -> list[int]:
        handles = [instance.handle for instance in self.instances if instance.number == number]
        lists = [self._ask("nvmlDeviceGetComputeRunningProcesses", handle) or () for handle in handles]
        return [process.pid for processes in lists for process in processes]

    def _utilisation(self, number: int) -> float | None:
        """The mean utilisation of an instance since the last call; None at the first one."""
        sample = self._ask("nvmlGpmSampleAlloc")
        if sample is None or self._ask("nvmlGpmMigSampleGet", self._handle, number, sample) is None:
            return None
        last, self._samples[number] = self._samples.get(number), sample
        if last is None:
            return None
        order = self._nvml.c_nvmlGpmMetricsGet_t()
        order.version, order.numMetrics = self._nvml.NVML_GPM_METRICS_GET_VERSION, 1
        order.sample1, order.sample2 = last, sample
        order.metrics[0].metricId = self._nvml.NVML_GPM_METRIC_SM_UTIL
        answer = self._ask("nvmlGpmMetricsGet", order)
        self._ask("nvmlGpmSampleFree", last)
        return None if answer is None or answer.metrics[0].nvmlReturn else float(answer.metrics[0].value)

    def close(self) -> None:
        """Free the samples."""
        for sample in self._samples.values():
            self._ask("nvmlGpmSampleFree", sample)
        self._samples.clear()
