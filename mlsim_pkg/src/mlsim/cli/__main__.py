"""`python -m mlsim.cli` is the command `mlsim`."""

import sys

from mlsim.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
