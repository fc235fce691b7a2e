"""Order and time: which server is asked, when again, and what is sent; with servers that exist in memory only."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from data.clock import SystemClock
from data.inference.remote.runner import ATTEMPTS, RemoteRunner
from data.inference.remote.wire import request
from domain.entities.llm import Message, Sampling, Tool, Tooling
from domain.entities.models import RemoteModel
from domain.errors import EngineError, InvalidRequest, PromptTooLong
from domain.repositories.inference_runner import RunnerJob, RunnerOutcome, RunnerProgress
from domain.usecases.tool_calls import ToolCallFold

Reply = Callable[[dict[str, Any]], httpx.Response]
JOB = RunnerJob(
    id="j",
    cache_key="k",
    messages=(Message(role="user", content="Hi"),),
    sampling=Sampling(seed=2**40),
    max_tokens=20,
)


def events(*texts: str, finish: str | None = "stop") -> bytes:
    lines: list[dict[str, Any]] = [{"choices": [{"delta": {"content": text}}]} for text in texts]
    if finish is not None:
        lines.append({"choices": [{"delta": {}, "finish_reason": finish}]})
        lines.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": len(texts)}})
    return b"".join(b"data: " + json.dumps(line).encode() + b"\n\n" for line in lines)


def answer(*texts: str, finish: str | None = "stop") -> httpx.Response:
    return httpx.Response(200, content=events(*texts, finish=finish))


class Servers:
    """Replies in order by host; the last one again and again."""

    def __init__(self, owner: str = "vllm", **replies: list[Reply | httpx.Response]) -> None:
        self.replies = replies
        self.owner = owner
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.waits: list[float] = []
        self.four_asked = asyncio.Event()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/models"):
            return httpx.Response(200, json={"data": [{"id": "m", "owned_by": self.owner}]})
        body = json.loads(request.content)
        host = request.url.host
        self.asked.append((host, body))
        if len(self.asked) == 4:
            self.four_asked.set()
        replies = self.replies[host]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return reply(body) if callable(reply) else reply

    def runner(self, **fields: Any) -> RemoteRunner:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        urls = tuple(f"http://{host}/v1" for host in self.replies)
        return RemoteRunner(
            "m",
            RemoteModel(**{"urls": urls, "model": "m", **fields}),
            SystemClock(),
            environment={"KEY": "secret"},
            sleep=sleep,
            chance=random.Random(1),
            transport=httpx.MockTransport(self),
        )


def run(runner: RemoteRunner, job: RunnerJob = JOB) -> tuple[RunnerOutcome, list[RunnerProgress]]:
    seen: list[RunnerProgress] = []

    async def whole() -> RunnerOutcome:
        try:
            return await runner.run(job, seen.append)
        finally:
            await runner.aclose()

    return asyncio.run(whole()), seen


def test_what_is_asked() -> None:
    servers = Servers(a=[answer("Hello", " you")])
    outcome, seen = run(
        servers.runner(priority=True, key_variable="KEY"), JOB.model_copy(update={"tier": 2, "stop": ("x",)})
    )
    assert (outcome.text, outcome.finish_reason, outcome.tokens_done) == ("Hello you", "stop", 2)
    assert outcome.usage.prompt_tokens == 7
    assert [progress.text for progress in seen] == ["Hello", " you", ""]
    ((_, body),) = servers.asked
    assert body["priority"] == 2
    assert body["seed"] < 2**31
    assert "stop" not in body, "stop strings are looked for here"
    assert body["messages"] == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("kind", "told"), [("llama.cpp", True), ("vllm", True), ("openai", False), ("", False)]
)
def test_no_thinking_is_asked_of_servers_that_know_the_word(kind: str, told: bool) -> None:
    remote = RemoteModel(urls=("http://a/v1",), model="m")
    for thinking in (True, False):
        asked = JOB.model_copy(update={"thinking": thinking})
        _, body = request(remote, asked, "", 0, kind, whole=True)
        words = {"enable_thinking": False} if told and not thinking else None
        assert body.get("chat_template_kwargs") == words


def test_a_stream_that_breaks_off_is_continued_by_the_other_server() -> None:
    servers = Servers(a=[answer("Once ", "upon", finish=None)], b=[answer(" a time")])
    outcome, _ = run(servers.runner())
    assert outcome.text == "Once upon a time"
    assert [host for host, _ in servers.asked] == ["a", "b"]
    body = servers.asked[1][1]
    assert body["messages"][-1] == {"role": "assistant", "content": "Once upon"}
    assert body["continue_final_message"] is True
    assert body["add_generation_prompt"] is False
    assert body["max_tokens"] == JOB.max_tokens - 2
    assert servers.waits == [], "another server is asked at once"


@pytest.mark.parametrize(
    "rest",
    [
        [{"reasoning_content": " well."}, {"content": "Yes."}],
        [{"content": " well."}, {"content": "</think>"}, {"content": "Yes."}],
    ],
)
def test_half_a_thought_is_thought_to_its_end(rest: list[dict[str, str]]) -> None:
    def told(deltas: list[dict[str, str]], finish: str | None) -> httpx.Response:
        lines = [{"choices": [{"delta": delta}]} for delta in deltas]
        end = [{"choices": [{"delta": {}, "finish_reason": finish}]}] if finish else []
        return httpx.Response(200, text="".join(f"data: {json.dumps(line)}\n\n" for line in [*lines, *end]))

    servers = Servers(a=[told([{"reasoning_content": "Hm,"}], None)], b=[told(rest, "stop")])
    outcome, seen = run(servers.runner())
    assert outcome.text == "<think>Hm, well.</think>Yes." == "".join(progress.text for progress in seen)


def test_a_server_that_cannot_continue_is_asked_for_the_whole_again() -> None:
    refuses: Reply = lambda body: httpx.Response(400, json={"error": "no"})  # noqa: E731

    def reply(body: dict[str, Any]) -> httpx.Response:
        return refuses(body) if "stream" not in body else next(streams)

    streams = iter([answer("One ", "two", finish=None), answer("One two", " three")])
    servers = Servers(owner="somebody", a=[reply])
    outcome, seen = run(servers.runner())
    assert outcome.text == "One two three" == "".join(progress.text for progress in seen)
    assert len(servers.waits) == 1

    streams = iter([answer("One ", "two", finish=None), answer("Un deux")])
    with pytest.raises(EngineError, match="gone on differently"):
        run(Servers(owner="somebody", a=[reply]).runner())


def test_attempts_are_bounded_and_come_slower_and_slower() -> None:
    servers = Servers(a=[httpx.Response(503, text="busy")])
    with pytest.raises(
        EngineError, match=rf"after {ATTEMPTS} attempts\. The server at http://a/v1 answered 503"
    ):
        run(servers.runner())
    assert len([body for _, body in servers.asked]) == ATTEMPTS
    assert len(servers.waits) == ATTEMPTS - 1
    assert max(servers.waits[-2:]) > servers.waits[0]


def test_a_server_that_failed_twice_rests() -> None:
    servers = Servers(a=[httpx.Response(500)], b=[answer("ok")])
    runner = servers.runner()

    async def many() -> None:
        for number in range(6):
            await runner.run(
                JOB.model_copy(update={"id": f"j{number}", "cache_key": f"k{number}"}), lambda p: None
            )
        await runner.aclose()

    asyncio.run(many())
    assert [host for host, _ in servers.asked].count("a") == 2
    assert runner.pool.servers[0].rests_s() > 0


def test_jobs_go_to_the_least_loaded_server_and_a_conversation_to_its_own() -> None:
    gate = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        await gate.wait()
        yield events("ok")

    servers = Servers(
        a=[lambda body: httpx.Response(200, content=slow())],
        b=[lambda body: httpx.Response(200, content=slow())],
    )
    runner = servers.runner()

    async def four() -> None:
        def start(name: str, key: str) -> asyncio.Task[RunnerOutcome]:
            job = JOB.model_copy(update={"id": name, "cache_key": key})
            return asyncio.create_task(runner.run(job, lambda p: None))

        tasks = [start(f"j{number}", f"k{number}") for number in range(4)]
        await servers.four_asked.wait()
        assert [server.active for server in runner.pool.servers] == [2, 2]
        gate.set()
        await asyncio.gather(*tasks)
        again = [start("again", "k1"), start("more", "k0")]
        await asyncio.gather(*again)
        await runner.aclose()

    asyncio.run(four())
    first = [host for host, _ in servers.asked[:4]]
    assert sorted(first) == ["a", "a", "b", "b"]
    assert [host for host, _ in servers.asked[4:]] == [first[1], first[0]]


@pytest.mark.parametrize(
    ("response", "error", "words"),
    [
        (httpx.Response(401, json={"error": {"message": "bad key"}}), EngineError, "does not accept the key"),
        (httpx.Response(404, json={"detail": "no such model"}), EngineError, "no such model"),
        (httpx.Response(422, json={"message": "top_p is wrong"}), InvalidRequest, "top_p is wrong"),
        (httpx.Response(400, text="<html>" + "x" * 10_000), InvalidRequest, "refused the request"),
        (
            httpx.Response(
                400,
                json={
                    "message": "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens"
                },
            ),
            PromptTooLong,
            "9000 tokens",
        ),
    ],
)
def test_refusals_are_told_and_not_tried_again(
    response: httpx.Response, error: type[Exception], words: str
) -> None:
    servers = Servers(a=[response])
    with pytest.raises(error, match=words) as caught:
        run(servers.runner())
    assert len(servers.asked) == 1
    assert len(str(caught.value)) < 600
    assert "secret" not in str(caught.value)


def test_a_key_that_is_not_set_is_named() -> None:
    with pytest.raises(InvalidRequest, match="environment variable OTHER"):
        run(Servers(a=[answer("x")]).runner(key_variable="OTHER"))


def test_nonsense_is_a_failure_of_the_server() -> None:
    bad = [
        b"data: {no json}\n\n",
        b'data: {"choices": 5}\n\n',
        b'data: {"error": "out of memory"}\n\n',
        b"x" * 100,
    ]
    servers = Servers(a=[*(httpx.Response(200, content=content) for content in bad), answer("fine")])
    outcome, _ = run(servers.runner())
    assert outcome.text == "fine"
    assert len(servers.asked) == 5


def test_tool_calls_and_thoughts_come_as_text() -> None:
    def delta(**fields: Any) -> bytes:
        return b"data: " + json.dumps({"choices": [{"delta": fields}]}).encode() + b"\n\n"

    call = {"index": 0, "function": {"name": "weather", "arguments": '{"place": '}}
    rest = {"index": 0, "function": {"arguments": '"Rome"}'}}
    content = (
        delta(reasoning_content="Hm, ")
        + delta(reasoning_content="well.")
        + delta(content="Let me see. ")
        + delta(tool_calls=[call])
        + delta(tool_calls=[rest])
        + events(finish="tool_calls")
    )
    tool = Tool(name="weather")
    servers = Servers(a=[httpx.Response(200, content=content)])
    job = JOB.model_copy(update={"tooling": Tooling(tools=(tool,), must_call=True)})
    outcome, _ = run(servers.runner(), job)
    assert outcome.text.startswith("<think>Hm, well.</think>Let me see. ")
    assert servers.asked[0][1]["tool_choice"] == "required"
    fold = ToolCallFold((tool,), "id")
    fold.feed(outcome.text)
    fold.end()
    assert [(call.name, call.arguments) for call in fold.calls] == [("weather", {"place": "Rome"})]


def test_a_stop_after_the_end_is_too_late() -> None:
    runner = Servers(a=[answer("One", " two")]).runner()

    def emit(progress: RunnerProgress) -> None:
        if progress.text == "":
            runner.stop(JOB.id)

    async def whole() -> RunnerOutcome:
        outcome = await runner.run(JOB, emit)
        await runner.aclose()
        return outcome

    assert asyncio.run(whole()).status == "finished"
