"""The program ``wattribute``, and ``python -m wattribute``."""

import sys


def main() -> None:
    if sys.argv[1:2] == ["run"]:  # its command waits for the sampler: let that start before all else is imported
        from .recorders.early_start import early

        early(sys.argv[2:])
    from .cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
