"""Attribution → people: tables (``console``), pictures (``plot`` and ``charts/``), the report, the interactive page.

What they share is here once: ``kinds`` (a colour per kind of work), ``names`` (labels from frame names), ``numbers``
(three digits with SI prefixes), ``theme`` (light and dark). Nothing in here computes energy: it asks attribution.
"""
