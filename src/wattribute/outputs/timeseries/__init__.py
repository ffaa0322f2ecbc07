"""Recordings, finished or running, → servers of time series: VictoriaMetrics, InfluxDB, OTLP, OpenMetrics.

::

    Recording ─ series ─┐                          ┌─ send      a finished recording, with its true times (export --to)
                        ├─ Series ─ protocols ─────┼─ pusher    a process that follows the journal of a run (--push)
    journal ─ follow ───┘  (columns)  (encode only)└─ endpoint  another one that answers scrapers (--serve)

``series`` decides which metrics a recording yields, with names and labels; ``follow`` yields the same of a journal
that is being written, the same points, by the rules of ``running``. ``protocols`` and ``openmetrics`` only encode.
``target`` knows addresses, ``secrets`` who we are, ``client`` HTTP, ``spool`` what could not be sent yet; ``following``
starts and ends the processes.
"""
