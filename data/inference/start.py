"""Where the engine process begins: `python -m data.inference.start PARENT_PID`."""

import sys

from data.children.start import die_with

if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    from data.inference import engine

    engine.main()
