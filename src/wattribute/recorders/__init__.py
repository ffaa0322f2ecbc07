"""A RUNNING PROGRAM → Recording.

``command`` runs a child under ``sampling``, the near end of the sampler's process, which ``boot`` starts; ``sampler``
is what runs there: it reads meters, each by its plan (``plans``), and appends to a ``journal``, which ``build`` turns
into a Recording, at the end or after a kill. ``regions`` are what a program marks itself (``region_files`` joins them),
``stacks`` and ``calls`` what a Python program does (``stack_files`` joins them), ``ranks`` the processes of a parallel
job.
"""
