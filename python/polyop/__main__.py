"""The command line: `python -m polyop COMMAND …`."""

import sys

from polyop._commands.main import main

if __name__ == "__main__":
    sys.exit(main())
