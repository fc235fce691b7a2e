"""What OpenAI's own client reads from the API, over the real scheduler; and that a job ends with its connection."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import openai
import pytest

from data.inference.fake import FakeRunner
from data.scheduling.config import SchedulerConfig
from domain.repositories.inference_runner import RunnerJob
from tests.presentation.api.served import Api, served

HELLO: Any = [{"role": "user", "content": "Say hello."}]
CHAT = "/v1/chat/completions"
Test = Callable[[Api], Coroutine[Any, Any, None]]


def on(folder: Path, test: Test, runner: FakeRunner | None = None, **options: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(120), served(folder, runner, **options) as api:
            await test(api)

    asyncio.run(main())


def says(text: str) -> FakeRunner:
    return FakeRunner(("tiny",), answer=lambda job: text)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(0.005)


def test_an_answer_is_read_by_openais_client(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            raw = await client.chat.completions.with_raw_response.create(model="tiny", messages=HELLO)
            answer = raw.parse()
            assert raw.headers["x-queue-position"] in ("0", "1")
            assert answer.object == "chat.completion"
            assert answer.model == "tiny"
            (choice,) = answer.choices
            assert choice.finish_reason == "stop"
            assert choice.message.role == "assistant"
            assert choice.message.content == " Hello there you"
            assert choice.message.tool_calls is None
            assert answer.usage is not None
            assert answer.usage.completion_tokens == 3
            assert answer.usage.total_tokens == answer.usage.prompt_tokens + 3
            default = await client.chat.completions.create(model="default", messages=HELLO)
            assert default.model == "tiny"

    on(tmp_path, test, says(" Hello there you"))


def test_a_streamed_answer_is_the_same_text(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            stream = await client.chat.completions.create(
                model="tiny", messages=HELLO, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
            assert chunks[0].choices[0].delta.role == "assistant"
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            assert text == "Hello there you"
            assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
            assert chunks[-1].choices == []
            assert chunks[-1].usage is not None
            assert chunks[-1].usage.completion_tokens == 3
            assert len({chunk.id for chunk in chunks}) == 1

    on(tmp_path, test, says("Hello there you"))


def test_a_raw_prompt_is_continued(tmp_path: Path) -> None:
    seen: list[RunnerJob] = []

    def answer(job: RunnerJob) -> str:
        seen.append(job)
        return "and so on"

    async def test(api: Api) -> None:
        async with api.openai() as client:
            whole = await client.completions.create(model="tiny", prompt="Once", max_tokens=9)
            assert whole.choices[0].text == "and so on"
            stream = await client.completions.create(model="tiny", prompt=["Once"], stream=True)
            text = "".join([chunk.choices[0].text async for chunk in stream])
            assert text == "and so on"
        assert [job.prompt for job in seen] == ["Once", "Once"]
        assert [job.max_tokens for job in seen] == [9, 16]

    on(tmp_path, test, FakeRunner(("tiny",), answer=answer))


def test_what_is_asked_for_reaches_the_engine(tmp_path: Path) -> None:
    seen: list[RunnerJob] = []

    def answer(job: RunnerJob) -> str:
        seen.append(job)
        return "{}"

    async def test(api: Api) -> None:
        async with api.openai() as client:
            schema: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer"}}}
            await client.chat.completions.create(
                model="tiny",
                messages=[
                    {"role": "developer", "content": "Be short."},
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                    },
                ],
                temperature=0.5,
                top_p=0.9,
                seed=-1,
                stop=["X", "Y"],
                max_completion_tokens=7,
                response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
                extra_body={"top_k": 3, "nonsense": [1, 2], "frequency_penalty": 0},
            )
            await client.chat.completions.create(
                model="tiny", messages=HELLO, max_tokens=3, response_format={"type": "json_object"}, stop="Z"
            )
        first, second = seen
        assert [(m.role, m.content) for m in first.messages] == [("system", "Be short."), ("user", "ab")]
        assert first.sampling.model_dump() == {
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 3,
            "min_p": 0.0,
            "seed": 2**63 - 1,
        }
        assert (first.stop, first.max_tokens, first.json_schema) == (("X", "Y"), 7, schema)
        assert (second.stop, second.max_tokens, second.json_schema) == (("Z",), 3, {"type": "object"})

    on(tmp_path, test, FakeRunner(("tiny",), answer=answer))


@pytest.mark.parametrize(
    ("words", "thinks"),
    [
        ({}, True),
        ({"reasoning_effort": "high"}, True),
        ({"reasoning_effort": "none"}, False),
        ({"chat_template_kwargs": {"enable_thinking": False, "other": 1}}, False),
        ({"chat_template_kwargs": {"thinking": False}}, False),
        ({"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "none"}, True),
        ({"chat_template_kwargs": {}}, True),
    ],
)
def test_a_program_may_ask_for_the_answer_at_once(
    tmp_path: Path, words: dict[str, object], thinks: bool
) -> None:
    seen: list[RunnerJob] = []

    def answer(job: RunnerJob) -> str:
        seen.append(job)
        return "Four"

    async def test(api: Api) -> None:
        async with api.openai() as client:
            await client.chat.completions.create(model="tiny", messages=HELLO, extra_body=words)
        assert [job.thinking for job in seen] == [thinks]

    on(tmp_path, test, FakeRunner(("tiny",), answer=answer))


def test_thinking_is_told_apart(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            whole = await client.chat.completions.create(model="tiny", messages=HELLO)
            assert whole.choices[0].message.content == "It is four"
            assert whole.choices[0].message.model_extra == {"reasoning_content": "two and two"}
            stream = await client.chat.completions.create(model="tiny", messages=HELLO, stream=True)
            deltas = [chunk.choices[0].delta async for chunk in stream]
            thought = "".join((delta.model_extra or {}).get("reasoning_content", "") for delta in deltas)
            assert thought.strip() == "two and two"
            assert "".join(delta.content or "" for delta in deltas) == "It is four"

    on(tmp_path, test, says("<think> two and two </think>\n\nIt is four"))


WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bonn"}}\n</tool_call>'


@pytest.mark.parametrize("said", ["", "Let me look. "])
def test_tool_calls_are_read_by_openais_client(tmp_path: Path, said: str) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            whole = await client.chat.completions.create(model="tiny", messages=HELLO, tools=[WEATHER])
            (choice,) = whole.choices
            assert choice.finish_reason == "tool_calls"
            assert (choice.message.content or "") == said
            assert choice.message.tool_calls is not None
            calls: list[Any] = list(choice.message.tool_calls)
            assert [call.function.name for call in calls] == ["get_weather", "get_weather"]
            assert json.loads(calls[0].function.arguments) == {"city": "Bonn"}
            assert len({call.id for call in calls}) == 2
            async with client.chat.completions.stream(
                model="tiny", messages=HELLO, tools=[WEATHER]
            ) as stream:
                final = await stream.get_final_completion()
            streamed: list[Any] = list(final.choices[0].message.tool_calls or ())
            assert [json.loads(call.function.arguments) for call in streamed] == [{"city": "Bonn"}] * 2
            assert final.choices[0].finish_reason == "tool_calls"
            # The answers of the tools go back in OpenAI's own shape.
            history = [*HELLO, choice.message.model_dump(exclude_none=True)]
            history += [{"role": "tool", "tool_call_id": call.id, "content": "7 °C"} for call in calls]
            await client.chat.completions.create(model="tiny", messages=history, tools=[WEATHER])

    on(tmp_path, test, says(f"{said}{CALL}\n{CALL}"))


def test_embeddings_and_models_are_read_by_openais_client(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            both = await client.embeddings.create(model="default", input=["a cat", "a dog"])
            assert [one.index for one in both.data] == [0, 1]
            assert len(both.data[0].embedding) == 64
            plain = await client.embeddings.create(
                model="all-MiniLM-L6-v2", input="a cat", encoding_format="float"
            )
            assert plain.data[0].embedding == pytest.approx(both.data[0].embedding, abs=1e-6)
            assert plain.usage.total_tokens > 0
            assert [model.id async for model in client.models.list()] == ["tiny", "all-minilm-l6-v2"]
            assert (await client.models.retrieve("tiny")).id == "tiny"
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve("none")
            with pytest.raises(openai.NotFoundError):
                await client.embeddings.create(model="text-embedding-3-small", input="a")
            with pytest.raises(openai.BadRequestError, match="64 numbers"):
                await client.embeddings.create(model="default", input="a", dimensions=3)

    on(tmp_path, test)


FUNCTION = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("change", "status", "says_so"),
    [
        ({"model": "none"}, 404, "There is no model none"),
        ({"n": 2}, 400, "n: UNIUN gives one answer"),
        ({"logprobs": True}, 400, "logprobs: UNIUN does not tell log probabilities"),
        ({"logit_bias": {"5": 1}}, 400, "logit_bias"),
        ({"frequency_penalty": 0.5}, 400, "frequency_penalty"),
        ({"temperature": "hot"}, 400, "temperature: it should be a number"),
        ({"temperature": 9}, 400, "temperature"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "user"}]}, 400, "content is missing"),
        ({"messages": [{"role": "king", "content": "a"}]}, 400, "messages.0.role"),
        ({"messages": [{"role": "user", "content": " "}]}, 400, "the prompt is empty"),
        ({"messages": [{"role": "user", "content": "a " * 5000}]}, 400, "The prompt has"),
        ({"response_format": {"type": "json_schema"}}, 400, "json_schema is missing"),
        ({"tool_choice": "required"}, 400, "there are no tools"),
        ({"service_tier": "gold"}, 400, "service_tier"),
        ({"metadata": {"kind": "king"}}, 400, "metadata.kind"),
        ({"metadata": {"deadline": "2026-01-01T00:00:00"}}, 400, "time zone"),
        ({"metadata": {"deadline": "9999-12-31T23:59:59-12:00"}}, 400, "metadata.deadline"),
        ({"metadata": {"deadline": "0001-01-01T00:00:00+14:00"}}, 400, "metadata.deadline"),
        ({"timeout": -1}, 400, "timeout"),
        ({"stop": ""}, 400, "stop"),
    ],
)
def test_what_cannot_be_done_is_named(
    tmp_path: Path, change: dict[str, Any], status: int, says_so: str
) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            for stream in (False, True):
                body = {"model": "tiny", "messages": HELLO, "stream": stream, **change}
                answer = await client.post(CHAT, json=body)
                error = answer.json()["error"]
                assert answer.status_code == status, error
                assert says_so in error["message"]
                assert set(error) == {"message", "type", "param", "code"}

    on(tmp_path, test)


CHAT_REFUSED: list[tuple[str, Any]] = [
    *(("n", 2), ("logprobs", True), ("top_logprobs", 3), ("logit_bias", {"5": 1})),
    *(("frequency_penalty", 0.5), ("presence_penalty", -1)),
    *(("tools", [FUNCTION, FUNCTION]), ("tool_choice", "required")),
    ("tool_choice", {"type": "function", "function": {"name": "f"}}),
    ("tools.0.type", [{"type": "retrieval"}]),
    ("messages.0.content.0.type", [{"role": "user", "content": [{"type": "image_url"}]}]),
    ("messages.0.content.0.type", [{"role": "user", "content": [{"type": "input_audio"}]}]),
    *(("metadata.deadline", {"deadline": "tomorrow"}), ("metadata.kind", {"kind": "king"})),
]
OTHERS_REFUSED: list[tuple[str, Any]] = [
    *(("n", 2), ("best_of", 2), ("logprobs", 1), ("echo", True), ("suffix", "x")),
    *(("prompt", ["a", "b"]), ("prompt", [1, 2]), ("prompt", [[1]])),
]


@pytest.mark.parametrize(
    ("path", "rest", "param", "value"),
    [
        *((CHAT, {"messages": HELLO}, *refused) for refused in CHAT_REFUSED),
        *(("/v1/completions", {"prompt": "a"}, *refused) for refused in OTHERS_REFUSED),
        *(("/v1/embeddings", {}, "input", tokens) for tokens in ([1, 2], [[1]], [])),
    ],
)
def test_the_field_that_is_refused_is_the_errors_param(
    tmp_path: Path, path: str, rest: dict[str, Any], param: str, value: Any
) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            answer = await client.post(path, json={**rest, param.split(".")[0]: value})
            error = answer.json()["error"]
            assert answer.status_code == 400
            assert (error["param"], error["type"]) == (param, "invalid_request_error")
            assert error["message"].startswith(f"{param}: ")

    on(tmp_path, test)


@pytest.mark.parametrize("body", [b"{bad", b"", b'{"messages": NaN}', b'{"messages": "\xff"}', b"[" * 9_000])
def test_what_is_no_json_is_said_to_be_none(tmp_path: Path, body: bytes) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            answer = await client.post(CHAT, content=body, headers={"content-type": "application/json"})
            error = answer.json()["error"]
            assert answer.status_code == 400
            assert "JSON" in error["message"]
            assert error["code"] == "invalid_request"

    on(tmp_path, test)


def test_a_full_queue_is_told_with_when_to_come_again(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            waiting = [asyncio.create_task(_ask(client))]
            await until(lambda: api.runner.running is not None)
            waiting += [asyncio.create_task(_ask(client)) for _ in range(2)]
            await until(lambda: len(_queued(api)) == 2)
            with pytest.raises(openai.InternalServerError) as full:
                await client.chat.completions.create(model="tiny", messages=HELLO)
            assert full.value.status_code == 503
            assert full.value.response.headers["retry-after"] == "5"
            assert full.value.code == "queue_full"
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True), config=SchedulerConfig(max_queued=2))


def test_who_waits_is_told_where_it_stands(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        first = await api.post(CHAT, {"messages": HELLO, "stream": True})
        await until(lambda: api.runner.running is not None)
        second = await api.post(CHAT, {"messages": HELLO, "stream": True, "user": "b"})
        heads = (await second[0].readuntil(b": queued")).lower() + await second[0].readline()
        assert b"http/1.1 200" in heads
        assert b"x-queue-position: 1" in heads
        assert b": queued, position 1, starts in about " in heads, heads
        reading = asyncio.create_task(second[0].readuntil(b"data: [DONE]"))
        while not reading.done():
            await api.runner.step()
            await asyncio.sleep(0.01)
        assert ": prefill, 4 of " in reading.result().decode()
        for _, writer in (first, second):
            writer.close()

    on(tmp_path, test, FakeRunner(("tiny",), answer_tokens=2, stepped=True))


def test_a_deadline_to_start_ends_the_wait_with_a_cause(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            blocker = asyncio.create_task(_ask(client))
            await until(lambda: api.runner.running is not None)
            with pytest.raises(openai.APIStatusError) as late:
                await client.chat.completions.create(
                    model="tiny", messages=HELLO, extra_body={"timeout": 0.05}
                )
            assert late.value.status_code == 408
            assert "number 1 in the queue" in str(late.value)
            assert late.value.response.headers["x-should-retry"] == "false"
            stream = await client.chat.completions.create(
                model="tiny", messages=HELLO, stream=True, extra_body={"timeout": 0.05}
            )
            with pytest.raises(openai.APIError, match="not begun within"):
                async for _ in stream:
                    pass
            assert _queued(api) == []
            blocker.cancel()
            await asyncio.gather(blocker, return_exceptions=True)

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True))


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_the_queue_never_starts(tmp_path: Path, stream: bool) -> None:
    async def test(api: Api) -> None:
        _, blocker = await api.post(CHAT, {"messages": HELLO})
        await until(lambda: api.runner.running is not None)
        _, writer = await api.post(CHAT, {"messages": HELLO, "stream": stream, "user": "b"})
        await until(lambda: len(_queued(api)) == 1)
        job = _queued(api)[0]
        writer.close()
        await until(lambda: not _queued(api))
        assert f"run {job}" not in api.runner.calls
        blocker.close()

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("boundaries", [0, 1, 6])
def test_a_client_that_leaves_stops_its_job_within_one_boundary(
    tmp_path: Path, stream: bool, boundaries: int
) -> None:
    """After none it is in its first prefill chunk, after one in its second, after six it decodes."""

    async def test(api: Api) -> None:
        _, writer = await api.post(CHAT, {"messages": HELLO, "stream": stream})
        await until(lambda: api.runner.running is not None)
        for _ in range(boundaries):
            await api.runner.step()
        writer.close()
        await until(lambda: any(call.startswith("stop ") for call in api.runner.calls))
        await api.runner.step()
        assert api.runner.running is None
        await until(lambda: api.dispatcher.snapshot().running is None)

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True))


async def _ask(client: openai.AsyncOpenAI) -> None:
    await client.chat.completions.create(model="tiny", messages=HELLO)


def _queued(api: Api) -> list[str]:
    return [job.id for tier in api.dispatcher.snapshot().tiers.values() for job in tier]
