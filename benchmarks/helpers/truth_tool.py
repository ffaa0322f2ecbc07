"""One tool on one case of benchmarks/truth.py, in the tool's own environment: ``truth_tool.py TOOL CASE.json``.

Prints one line of JSON: the instants of the work on the monotonic clock, the energy in joules that the tool gives for
the asked parts (gpu, cpu, dram), its own range where it has one, and what start-up and a region cost. Each class is the
documented use of its tool: its constructor is what a program does once, ``begin`` and ``end`` enclose the work, or
``around`` runs it; ``empty`` is a region without work beside it, where the tool can have several.
"""

import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import time

KWH = 3.6e6


class Codecarbon:
    def __init__(self, case):
        from codecarbon import OfflineEmissionsTracker

        mode, self.dram = "process" if case["own"] else "machine", "dram" in case["parts"]
        self.tracker = OfflineEmissionsTracker(
            country_iso_code="FRA", measure_power_secs=1, tracking_mode=mode, rapl_include_dram=self.dram,
            save_to_file=False, log_level="critical",
        )  # fmt: skip

    def begin(self):
        self.tracker.start()

    def empty(self):
        self.tracker.start_task("empty")
        self.tracker.stop_task("empty")

    def end(self):
        self.tracker.stop()
        data = self.tracker.final_emissions_data
        cpu = "cpu+dram" if self.dram else "cpu"  # ram_energy is a model, and no reading
        return {"gpu": data.gpu_energy * KWH, cpu: data.cpu_energy * KWH}


class Zeus:
    def __init__(self, case):
        from zeus.monitor import ZeusMonitor

        self.monitor = ZeusMonitor(approx_instant_energy=True)

    def begin(self):
        self.monitor.begin_window("work", sync_execution=False)

    def empty(self):
        self.monitor.begin_window("empty", sync_execution=False)
        self.monitor.end_window("empty", sync_execution=False)

    def end(self):
        done = self.monitor.end_window("work", sync_execution=False)
        parts = {"gpu": done.gpu_energy, "cpu": done.cpu_energy, "dram": done.dram_energy}
        return {name: sum(each.values()) for name, each in parts.items() if each}


class Carbontracker:
    def __init__(self, case):
        from carbontracker.tracker import CarbonTracker

        self.tracker = CarbonTracker(
            epochs=1, epochs_before_pred=0, monitor_epochs=2, update_interval=0.1, components=case["parts"][0],
            verbose=0, log_dir=None,
        )  # fmt: skip
        self.part = "+".join(case["parts"])  # one figure: DRAM is part of its cpu

    def begin(self):
        self.tracker.epoch_start()

    def end(self):
        self.tracker.epoch_end()
        from carbontracker import constants

        energy = float(self.tracker.tracker.total_energy_per_epoch().sum()) * KWH
        return {self.part: energy / constants.PUE_2023}  # it adds a data centre's cooling; asked are the devices


class PyJoules:
    def __init__(self, case):
        from pyJoules.device import DeviceFactory
        from pyJoules.energy_meter import EnergyMeter

        self.meter = EnergyMeter(DeviceFactory.create_devices())

    def begin(self):
        self.meter.start(tag="work")

    def empty(self):
        self.meter.start(tag="empty")
        self.meter.stop()

    def end(self):
        self.meter.stop()
        parts = {}
        for domain, value in next(iter(self.meter.get_trace())).energy.items():
            for name, prefix, scale in (("gpu", "nvidia", 1e-3), ("cpu", "package", 1e-6), ("dram", "dram", 1e-6)):
                if domain.startswith(prefix):
                    parts[name] = parts.get(name, 0) + value * scale
        return parts


class Eco2ai:
    def __init__(self, case):
        import eco2ai

        own = "current" if case["own"] else "all"
        self.tracker = eco2ai.Tracker(
            project_name="truth", file_name="eco2ai.csv", measure_period=1, emission_level=100, alpha_2_code="FR",
            cpu_processes=own, ignore_warnings=True,
        )  # fmt: skip

    def begin(self):
        self.tracker.start()

    def end(self):
        cpu, gpu = self.tracker._cpu, self.tracker._gpu  # its file has one sum of all parts
        self.tracker.stop()
        return {"cpu": float(cpu.get_consumption()) * KWH, "gpu": float(gpu.get_consumption()) * KWH}


class Perun:
    """Decorators of the program and of the work: a process samples, and the results go to a callback."""

    def __init__(self, case):
        import perun

        self.perun, self.part, self.energies = perun, "+".join(case["parts"]), {}
        self.regions = case["regions"]

    def around(self, job):
        @self.perun.perun(sampling_period=0.1, data_out=".", log_lvl="ERROR")
        def main():
            self.perun.register_callback(self.take)
            self.region_s = timed(self.perun.monitor("empty")(lambda: None), self.regions)
            self.instants = self.perun.monitor("work")(job)()

        main()
        return self.instants

    def take(self, results):
        (run,) = results.nodes.values()
        metrics = {str(name.value): metric.mean for name, metric in run.regions["work"].metrics.items()}
        if "power" in metrics:  # of all sensors together: the simulated machine has those that are asked
            self.energies = {self.part: float(metrics["power"] * metrics["runtime"])}

    def begin(self):
        pass

    def end(self):
        return self.energies


class PyRapl:
    def __init__(self, case):
        import pyRAPL

        devices = [pyRAPL.Device.PKG] + ([pyRAPL.Device.DRAM] if "dram" in case["parts"] else [])
        pyRAPL.setup(devices=devices)
        self.measurement = pyRAPL.Measurement("work")

    def begin(self):
        self.measurement.begin()

    def empty(self):
        self.measurement.begin()
        self.measurement.end()

    def end(self):
        self.measurement.end()
        result = self.measurement.result
        parts = {"cpu": result.pkg, "dram": result.dram}  # None where it has no result
        return {name: sum(values) / 1e6 for name, values in parts.items() if values}


class Wattribute:
    def __init__(self, case):
        import wattribute

        self.wattribute, self.stack, self.own = wattribute, contextlib.ExitStack(), case["own"]
        self.parts, self.partly = case["parts"], False
        self.recorder = self.stack.enter_context(wattribute.record())

    def begin(self):
        self.region = self.wattribute.region("work")
        self.region.__enter__()

    def empty(self):
        with self.wattribute.region("empty"):
            pass

    def end(self):
        self.region.__exit__(None, None, None)
        self.stack.close()
        own = {"scope": "process"} if self.own else {}
        rows = self.wattribute.attribute(self.recorder.recording, by=("frame", "device"), **own).rows
        parts, ranges = {}, {}
        for row in rows.to_dicts():
            name = {"GPU": "gpu", "package": "cpu", "dram": "dram"}.get(str(row["device"]).split()[0])
            if row["frame"] != "work" or name is None:
                continue
            low, high = ranges.get(name, (0.0, 0.0))
            if row["total_j"] is not None:
                parts[name] = parts.get(name, 0.0) + row["total_j"]
            ranges[name] = (low + (row["total_low_j"] or 0.0), high + (row["total_high_j"] or 0.0))
            self.partly |= name in self.parts and row["covered_ns"] < 0.99 * row["total_ns"]
        self.ranges = ranges
        return parts


TOOLS = {
    "wattribute": Wattribute, "codecarbon": Codecarbon, "zeus": Zeus, "carbontracker": Carbontracker,
    "pyJoules": PyJoules, "eco2ai": Eco2ai, "perun": Perun, "pyRAPL": PyRapl,
}  # fmt: skip


def timed(region, times):
    """Seconds per call, None where none is asked for."""
    start = time.monotonic()
    for _ in range(times):
        region()
    return (time.monotonic() - start) / times if times else None


def work(case):
    """Sleep, or run the command; half-way through happens what the case wants to happen. Returns the instants."""
    if case["command"]:
        done = subprocess.run(case["command"], stdout=subprocess.PIPE, check=True)
        return tuple(map(int, done.stdout.split()))
    begin = time.monotonic_ns()
    half_s = max(case["seconds"], (case["until_ns"] - begin) / 1e9) / 2
    time.sleep(half_s)
    if case["fault"]:
        os.replace(case["fault"], os.environ["FAKE_NVML"])
    if case["stop"]:
        os.kill(case["stop"], signal.SIGSTOP)
    event = time.monotonic_ns()
    time.sleep(half_s)
    return begin, time.monotonic_ns(), event


def align(case):
    """Let the recording begin now, one second before its load."""
    path, start_ns = os.environ["FAKE_NVML"], time.monotonic_ns() - int(case["skip_s"] * 1e9)
    with open(path) as file:
        lines = [line for line in file if not line.startswith("start_ns")]
    with open(path + ".new", "w") as file:
        file.writelines([*lines, f"start_ns {start_ns}\n"])
    os.replace(path + ".new", path)
    time.sleep(1.0)
    return start_ns


def main():
    with open(sys.argv[2]) as file:
        case = json.load(file)
    out = os.dup(1)
    os.dup2(2, 1)  # tools print
    start = time.monotonic()
    tool = TOOLS[sys.argv[1]](case)
    ready_s = time.monotonic() - start
    region_s = timed(tool.empty, case["regions"]) if hasattr(tool, "empty") else None
    start_ns = align(case) if case["table"] else None
    start = time.monotonic()
    tool.begin()
    begin_s = time.monotonic() - start
    instants = tool.around(lambda: work(case)) if hasattr(tool, "around") else work(case)
    start = time.monotonic()
    parts = tool.end()
    end_s = time.monotonic() - start
    usage = os.times()
    answer = {
        "instants": instants, "start_ns": start_ns, "parts": parts, "ranges": getattr(tool, "ranges", {}),
        "partly": getattr(tool, "partly", False),
        "ready_s": ready_s, "begin_s": begin_s, "end_s": end_s, "cpu_s": sum(usage[:4]),
        "region_s": getattr(tool, "region_s", region_s),
    }  # fmt: skip
    os.write(out, (json.dumps(answer) + "\n").encode())
    for path in glob.glob("eco2ai.csv*"):
        os.remove(path)


if __name__ == "__main__":
    main()
