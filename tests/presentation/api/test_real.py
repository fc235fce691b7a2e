"""`uniun serve` as a program, with the real model, and OpenAI's own client in front of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from domain.entities.models import InstalledModel
from tests.conftest import TEST_STORE
from tests.presentation.api.tool_model import HERMES, MISTRAL, THINKING, with_template

pytestmark = pytest.mark.model
ROOT = Path(__file__).resolve().parents[3]
HELLO: Any = [{"role": "user", "content": "What is the capital of France?"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather now",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"$ref": "#/$defs/city"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
            "$defs": {"city": {"type": "string", "maxLength": 20}},
        },
    },
}
TIME: Any = {"type": "function", "function": {"name": "get_time"}}


@pytest.fixture(scope="module")
def url(smollm2: InstalledModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a free port with the default model, and with the same under other chat templates."""
    data = tmp_path_factory.mktemp("data")
    (data / "models").mkdir()
    (data / "models" / smollm2.name).symlink_to(TEST_STORE / "models" / smollm2.name)
    (TEST_STORE / "embedders").mkdir(exist_ok=True)
    (data / "embedders").symlink_to(TEST_STORE / "embedders")
    environment = {**os.environ, "UNIUN_DATA_DIR": str(data), "UNIUN_LOG_DIR": str(data / "log")}
    assert smollm2.gguf_path is not None
    program = [sys.executable, "-m", "uniun"]
    for name, template in (("tools", HERMES), ("mistral", MISTRAL), ("thinking", THINKING)):
        path = with_template(smollm2.gguf_path, template, data / f"{name}.gguf")
        subprocess.run([*program, "models", "add", name, str(path)], cwd=ROOT, env=environment, check=True)
    server = subprocess.Popen(
        [*program, "serve", "--port", "0"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    yield next(word for word in line.split() if word.startswith("http"))
    server.send_signal(signal.SIGINT)
    server.wait(timeout=120)


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120) as client:
        yield client


def test_every_endpoint_gives_what_the_client_expects(client: openai.OpenAI) -> None:
    names = {"smollm2-135m", "tools", "mistral", "thinking", "all-minilm-l6-v2"}
    assert {model.id for model in client.models.list()} == names
    assert client.models.retrieve("smollm2-135m").object == "model"
    whole = client.chat.completions.create(model="smollm2-135m", messages=HELLO, max_tokens=20)
    assert whole.choices[0].message.content
    assert whole.usage is not None
    assert whole.usage.prompt_tokens > 10
    with client.chat.completions.create(
        model="smollm2-135m",
        messages=HELLO,
        max_completion_tokens=20,
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == (
        whole.choices[0].message.content
    )
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    text = client.completions.create(model="default", prompt="One, two, three, four,", max_tokens=4)
    assert "five" in text.choices[0].text
    stopped = client.completions.create(
        model="default", prompt="One, two, three, four,", max_tokens=30, stop=[" six"]
    )
    assert stopped.choices[0].finish_reason == "stop"
    assert "six" not in stopped.choices[0].text
    vectors = client.embeddings.create(model="all-minilm-l6-v2", input=["a cat", "a kitten", "tax law"])
    cat, kitten, law = (one.embedding for one in vectors.data)
    assert len(cat) == 384
    assert _dot(cat, kitten) > _dot(cat, law)


def test_a_seed_repeats_an_answer(client: openai.OpenAI) -> None:
    said = {
        client.chat.completions.create(
            model="default", messages=HELLO, max_tokens=8, temperature=1.5, seed=seed
        )
        .choices[0]
        .message.content
        for seed in (7, 7, 8)
    }
    assert len(said) == 2


def test_an_answer_obeys_its_schema(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "big": {"type": "boolean"}},
        "required": ["city", "big"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(
        model="default",
        messages=HELLO,
        max_tokens=60,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )
    found = json.loads(answer.choices[0].message.content or "")
    assert set(found) == {"city", "big"}
    free = client.chat.completions.create(
        model="default", messages=HELLO, max_tokens=4, response_format={"type": "json_object"}
    )
    assert (free.choices[0].message.content or "").startswith("{")
    with pytest.raises(openai.BadRequestError, match="cannot be compiled"):
        client.chat.completions.create(
            model="default",
            messages=HELLO,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": {"type": "no such type"}},
            },
        )


@pytest.mark.parametrize("model", ["tools", "mistral"])
@pytest.mark.parametrize(
    ("choice", "stream"),
    [("required", False), ({"type": "function", "function": {"name": "get_weather"}}, True)],
)
def test_a_small_model_too_gives_calls_that_parse(
    client: openai.OpenAI, model: str, choice: Any, stream: bool
) -> None:
    wanted: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "Use get_weather for Paris."}],
        "tools": [TIME, WEATHER],
        "tool_choice": choice,
        "max_tokens": 80,
        "parallel_tool_calls": False,
    }
    if stream:
        with client.chat.completions.stream(**wanted) as events:
            answer: Any = events.get_final_completion()
    else:
        answer = client.chat.completions.create(**wanted)
    assert answer.choices[0].finish_reason == "tool_calls"
    (call,) = answer.choices[0].message.tool_calls
    arguments = json.loads(call.function.arguments)
    if call.function.name == "get_weather":
        assert set(arguments) == {"city", "unit"}
        assert arguments["unit"] in ("celsius", "fahrenheit")
    else:
        assert choice == "required"
    told: Any = {"role": "tool", "tool_call_id": call.id, "content": "7 degrees, rain"}
    said: Any = answer.choices[0].message.model_dump(
        exclude_none=True, include={"role", "content", "tool_calls"}
    )
    after = client.chat.completions.create(
        model=model, messages=[*wanted["messages"], said, told], max_tokens=5
    )
    assert after.choices[0].message.content


def test_a_model_whose_template_begins_the_thinking_thinks_apart(client: openai.OpenAI) -> None:
    asked: Any = {
        "model": "thinking",
        "messages": [{"role": "user", "content": "Are you well?"}],
        "max_tokens": 40,
    }
    whole = client.chat.completions.create(**asked).choices[0]
    assert whole.message.model_extra == {"reasoning_content": "I am fine."}
    assert (whole.message.content or "").endswith(", very well.")
    thought = said = ""
    with client.chat.completions.create(**asked, stream=True) as stream:
        for chunk in stream:
            thought += (chunk.choices[0].delta.model_extra or {}).get("reasoning_content", "")
            said += chunk.choices[0].delta.content or ""
    assert (thought, said) == ("I am fine.", whole.message.content)
    structured = client.chat.completions.create(**asked, response_format={"type": "json_object"}).choices[0]
    assert (structured.message.content or "").startswith("{")
    assert structured.message.model_extra == {}


def test_with_auto_it_may_also_just_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tools", messages=HELLO, tools=[WEATHER], max_tokens=12)
    assert answer.choices[0].message.content or answer.choices[0].message.tool_calls


def test_a_model_without_tools_says_so(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="chat template has no tools"):
        client.chat.completions.create(model="smollm2-135m", messages=HELLO, tools=[WEATHER])


def test_health_metrics_and_keys(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=120) as client:
        assert client.get("/health").json()["status"] == "ok"
        assert 'uniun_tokens_total{kind="api"}' in client.get("/metrics").text
        assert client.get("/scheduler").json()["resident"] in ("smollm2-135m", "tools")


def _dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
