"""What run, monitor, profile, doctor, experiment, push and serve do: conduct recorders, ask, write, show."""
