"""A running program → Recording: regions and ranks of a program, a sampler of the meters, a command run between."""
