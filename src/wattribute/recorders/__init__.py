"""A RUNNING PROGRAM → Recording.

``command`` runs a child under ``sampling``, the parent's handle of the sampler process, which ``early_start`` starts.
``sampler`` runs there: it reads meters, each by its ``schedule``, and appends to a journal, which the reader "journal"
turns into a Recording, at the end or after a kill. ``regions`` are what a program marks itself, ``stacks`` and
``calls`` what a Python program does (``readers.region_files`` and ``readers.stack_files`` join them), ``ranks`` the
processes of a parallel job.
"""
