"""The suite that every runner passes, as far as it can hold for text over a network.

Left out, and why: what is resident (nothing is here), boundaries inside a prompt (servers tell of none that we could stop
at), a stop before the run that must still see one boundary (nothing is asked of the server then), equality to the token
of sampled answers after a cut (the server draws anew, and reads the text so far as other tokens than it wrote), the
process of the engine. `test_real_servers` tests what takes their place.
"""

import pytest

from tests.data.inference.engines import Rig
from tests.data.inference.test_conformance import (  # noqa: F401
    test_a_cancelled_run_leaves_the_runner_ready,
    test_a_stop_string_across_tokens_is_never_shown,
    test_an_emit_that_fails_leaves_the_runner_ready,
    test_an_empty_prompt_is_refused,
    test_streaming_equals_the_final_text,
    test_the_length_limit_ends_the_answer,
    test_the_seed_decides_the_text,
)

pytestmark = pytest.mark.model


@pytest.fixture
def rig(llama: Rig) -> Rig:
    return llama


def test_streaming_from_mlx_equals_the_final_text(mlx: Rig) -> None:
    test_streaming_equals_the_final_text(mlx)


def test_a_cancelled_run_leaves_mlx_ready(mlx: Rig) -> None:
    test_a_cancelled_run_leaves_the_runner_ready(mlx)
