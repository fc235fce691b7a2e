import numpy as np
import pytest

from data.inference.sampling import REDRAW, sample, seed32, uniform
from domain.entities.llm import Sampling

LOGITS = np.log(np.array([0.05, 0.5, 0.15, 0.3], dtype=np.float32))


def frequencies(
    fields: dict[str, float], draws: int = 4000
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    sampling = Sampling.model_validate({"temperature": 1, "seed": 3, **fields})
    counts = np.bincount([sample(LOGITS, sampling, at) for at in range(draws)], minlength=4)
    return counts / draws


def test_temperature_zero_takes_the_likeliest() -> None:
    assert sample(LOGITS, Sampling(), 0) == 1


@pytest.mark.parametrize("temperature", [5e-324, 1e-40, 1e-10, 1e-5, 1e-4])
def test_a_temperature_near_zero_takes_the_likeliest(temperature: float) -> None:
    assert {sample(LOGITS, Sampling(temperature=temperature, seed=1), at) for at in range(50)} == {1}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [0.05, 0.5, 0.15, 0.3]),
        ({"top_k": 2}, [0, 0.625, 0, 0.375]),
        ({"top_p": 0.7}, [0, 0.625, 0, 0.375]),
        ({"min_p": 0.25}, [0, 0.526, 0.158, 0.316]),
        ({"temperature": 0.5}, [0.0068, 0.685, 0.0616, 0.2466]),
        ({"top_k": 3, "top_p": 0.9, "temperature": 2}, [0, 0.4429, 0.2426, 0.3431]),
    ],
)
def test_draws_follow_the_distribution(fields: dict[str, float], expected: list[float]) -> None:
    wanted = np.array(expected)
    assert np.abs(frequencies(fields) - wanted / wanted.sum()).max() < 0.025


def test_a_masked_token_is_never_drawn() -> None:
    logits = LOGITS.copy()
    logits[1] = -np.inf
    sampling = Sampling(temperature=2, seed=1)
    assert 1 not in {sample(logits, sampling, at) for at in range(500)}
    assert sample(logits, Sampling(), 0) == 3


def test_a_draw_depends_on_seed_and_position_only() -> None:
    assert uniform(5, 7) == uniform(5, 7)
    draws = {uniform(seed, at) for seed in range(20) for at in (*range(20), REDRAW)}
    assert len(draws) == 20 * 21
    assert uniform(2**63 - 1, REDRAW) < 1


def test_seeds_of_32_bits_are_spread() -> None:
    seeds = [seed32(seed, at) for seed in range(50) for at in (*range(50), REDRAW)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert 0.45 < np.mean([seed % 2 for seed in seeds]) < 0.55
