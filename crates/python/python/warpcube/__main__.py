"""The command line: ``python -m warpcube``, and the script ``warpcube``."""

import sys

from ._engine import native as _native


def main() -> int:
    """Runs the program with the arguments of this process."""
    return _native.main(["warpcube", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
