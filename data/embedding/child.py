"""The process that embeds a backlog: JSON lines on stdin and stdout, and no more of the cores than nobody else wants.

It is a process and not a thread, for in a thread it would hold the interpreter's lock while it waits for a core, and the
program's event loop, which streams the answers, would wait for both: up to 120 ms measured.
"""

import ctypes
import os
import sys
from pathlib import Path

from data.children import lines
from data.embedding.minilm import MiniLm
from domain.errors import ModelDamaged

_LEAST = 19
_QOS_CLASS_BACKGROUND = 0x09


def step_back() -> None:
    """For good. Linux has a class for what runs on idle cores only, macOS one for background work."""
    os.nice(_LEAST)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif sys.platform == "darwin":
        ctypes.CDLL(None).pthread_set_qos_class_self_np(_QOS_CLASS_BACKGROUND, 0)


def main() -> None:
    """The first line has the folder of the weights, `{"folder"}`, each later one a `{"text"}`; the answers are `{}` or
    `{"error"}`, and `{"vector"}`. Ends with its stdin."""
    step_back()
    model: MiniLm | None = None
    while raw := sys.stdin.buffer.readline(lines.MAX_LINE_BYTES):
        line = lines.decode(raw)
        answer: lines.Line = {}
        if model is None:
            try:
                model = MiniLm(Path(line["folder"]))
            except ModelDamaged as error:
                answer = {"error": str(error)}
        else:
            answer = {"vector": model.embed(line["text"]).tolist()}
        sys.stdout.buffer.write(lines.encode(answer))
        sys.stdout.buffer.flush()
