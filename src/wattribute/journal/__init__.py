"""Our own format while a program runs: files that recorders append to and the reader "journal" turns into a Recording.

``file`` is the sampler's journal, ``layouts`` the rows that the measured program itself writes. Nothing here imports
NumPy: the sampler and programs under a profile load these modules while they start.
"""
