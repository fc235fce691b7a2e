"""The command line over a scripted model, as a program of its own, for tests that need a real terminal or real signals."""

import os
import sys
from pathlib import Path

from domain.entities.llm import Waiting
from presentation.cli.app import build_app
from presentation.cli.run import run
from tests.fakes import HOLD, ScriptedCoordinator, answer, fake_openers

if __name__ == "__main__":
    waiting = Waiting(position=1, estimated_start_s=None, reason="loading tiny, 0 s of about 10 s")
    coordinator = ScriptedCoordinator(
        [*answer("Half an answer")[:1], HOLD], answer("A whole", " one."), [waiting, HOLD]
    )
    sys.exit(run(build_app(fake_openers(coordinator)), sys.argv[1:], lambda: Path(os.devnull)))
