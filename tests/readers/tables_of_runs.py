"""Files of runs as codecarbon and Eco2AI write them, of our own making."""

import csv
from datetime import datetime, timedelta

CODECARBON = [
    "timestamp", "project_name", "run_id", "duration", "emissions", "emissions_rate", "cpu_power", "gpu_power",
    "ram_power", "cpu_energy", "gpu_energy", "ram_energy", "energy_consumed", "country_name", "country_iso_code",
    "region", "cloud_provider", "cloud_region", "os", "python_version", "codecarbon_version", "cpu_count",
    "cpu_model", "gpu_count", "gpu_model", "longitude", "latitude", "ram_total_size", "tracking_mode", "on_cloud",
    "pue",
]  # fmt: skip
ECO2AI = [
    "id", "project_name", "experiment_description", "epoch", "start_time", "duration(s)", "power_consumption(kWh)",
    "CO2_emissions(kg)", "CPU_name", "GPU_name", "OS", "region/country", "cost",
]  # fmt: skip
BEGIN = datetime(2024, 5, 1, 12, 0, 0)


def codecarbon_row(at_s, duration_s, cpu_kwh, ram_kwh=0.0, gpu_kwh=0.0, kg_per_kwh=0.029, country="Canada", **more):
    """A run that ended ``at_s`` after BEGIN; as in the tool, emissions are energy × intensity."""
    energy = cpu_kwh + ram_kwh + gpu_kwh
    row = dict.fromkeys(CODECARBON, "")
    row |= {"timestamp": (BEGIN + timedelta(seconds=at_s)).isoformat(), "project_name": "a [bold]project"}
    row |= {"duration": repr(duration_s), "emissions": repr(energy * kg_per_kwh), "cpu_energy": repr(cpu_kwh)}
    row |= {"gpu_energy": repr(gpu_kwh), "ram_energy": repr(ram_kwh), "energy_consumed": repr(energy)}
    return row | {"country_name": country, "codecarbon_version": "2.2.5", "pue": "1.0"} | more


def eco2ai_row(at_s, duration_s, kwh, kg, run="r", epoch="N/A", **more):
    row = dict.fromkeys(ECO2AI, "")
    row |= {"id": run, "project_name": "p", "experiment_description": "fit", "epoch": epoch}
    row |= {"start_time": str(BEGIN + timedelta(seconds=at_s)), "duration(s)": repr(duration_s)}
    row |= {"power_consumption(kWh)": repr(kwh), "CO2_emissions(kg)": repr(kg), "region/country": "GB/England"}
    return row | more


def write(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path
