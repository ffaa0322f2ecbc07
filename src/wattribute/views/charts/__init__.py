"""Charts, one small module per family; ``views.plot`` is their front. Each takes an Attribution, returns Altair.

::

    Attribution ⟶ source (whose joules, when)  ⟶ rows of plain dicts ⟶ canvas (title, axes, caption) ⟶ Altair chart

A module first makes rows (which hold all the numbers, sums included) and then marks; nothing is summed by Vega.
"""
