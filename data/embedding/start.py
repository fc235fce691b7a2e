"""Where the process that embeds a backlog begins: `python -m data.embedding.start PARENT_PID`."""

import sys

from data.children.start import die_with

if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    from data.embedding import child

    child.main()
