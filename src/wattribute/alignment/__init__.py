"""Many timelines → one: readings become joules(t), locations find their devices, sensors are checked for sanity."""

from .energy import Energy, energy
from .sanity import Check, examine
from .topology import Topology

__all__ = ["Check", "Energy", "Topology", "energy", "examine"]
