"""What kind of child process the engine is."""

from data.children.process import Child
from domain.errors import EngineLost

ENVIRONMENT = {"GOMP_SPINCOUNT": "1000"}
"""llama.cpp's threads meet at a barrier hundreds of times per token. How long one spins there before it sleeps decides
what a busy machine does to it. Measured on two cores, decode tokens per second, alone and beside one program of another
terminal that wants a core: 20,000 spins 118 and 2.5, 3,000 spins 118 and 14, 1,000 spins 114 and 30, 500 spins 110 and
42, none 52; without a limit a single token took 7 s. The user's own setting has precedence. The number of threads stays
what it is all the same: attention divides its sums by it, and a text must not depend on what else runs."""
ENGINE = Child(
    arguments=("-m", "data.inference.start"),
    name="engine",
    lost=EngineLost,
    what_now="Load the model again; the job resumes from its tokens.",
    environment=ENVIRONMENT,
)
