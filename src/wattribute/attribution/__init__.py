"""Joules → code: who used a device when (``select``, ``shares``), folded over spans (``join``), summed (``rollup``)."""
