"""What kind of child process the engine is."""

from data.children.process import Child
from data.inference import barriers, huge_pages
from domain.errors import EngineLost

ENGINE = Child(
    arguments=("-m", "data.inference.start"),
    name="engine",
    lost=EngineLost,
    what_now="Load the model again; the job resumes from its tokens.",
    environment=barriers.ENVIRONMENT | huge_pages.ENVIRONMENT,
)
