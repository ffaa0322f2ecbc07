"""Alignment: readings → joules(t) on one timeline, locations → devices, sanity checks of sensors."""

from .energy import Energy, energy
from .sanity import Check, examine
from .topology import Topology

__all__ = ["Check", "Energy", "Topology", "energy", "examine"]
