"""Helpers for tests of wattribute and of its plug-ins; nothing of the package imports it.

``recordings`` builds Recordings by hand, ``simulation`` makes Recordings with a known truth,
``sensors`` simulates power sensors, ``sampling`` runs the
sampler in simulated time, ``contracts`` holds the tests that every reader, meter, output and engine has to pass (needs
pytest), ``strategies`` are random recordings (needs hypothesis).
"""
