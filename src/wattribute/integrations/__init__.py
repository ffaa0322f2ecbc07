"""wattribute inside other tools: a pytest plug-in and a Jupyter magic. Coats over ``record`` and ``region``."""
