"""The first token of a conversation's tenth answer against that of its first."""

from domain.entities.llm import GenerationRequest, LlmTaskKind, Message
from tests.bench import prompts
from tests.bench.figures import Figure, Report, at_most, median, spread
from tests.bench.setting import Setting, Timing, timed

TURNS = 10


async def run(setting: Setting) -> Report:
    """Every question is about as long as the first; whatever was said before should be found in kept state."""
    turns = 2 if setting.quick else TURNS
    conversations: list[list[Timing]] = []
    async with setting.dispatcher() as (dispatcher, _):
        await timed(setting.clock, dispatcher, prompts.chat(setting.model.name, 99_999, max_tokens=8))
        for number in range(setting.count(8)):
            messages: list[Message] = []
            timings: list[Timing] = []
            for turn in range(turns):
                question = f"{prompts.note(10 * number + turn, 2)} Tell me more about it."
                messages.append(Message(role="user", content=question))
                request = GenerationRequest(
                    kind=LlmTaskKind.CHAT,
                    flow=f"conversation {number}",
                    model=setting.model.name,
                    messages=tuple(messages),
                    max_tokens=24,
                )
                timing = await timed(setting.clock, dispatcher, request)
                messages.append(Message(role="assistant", content=timing.result.text))
                timings.append(timing)
            conversations.append(timings)
    ratios = [timings[-1].first_token_s / timings[0].first_token_s for timings in conversations]
    last = [timings[-1].result.usage for timings in conversations]
    raw = {
        "first_token_s_by_turn": [
            median([timings[turn].first_token_s for timings in conversations]) for turn in range(turns)
        ],
        "first_turn_prompt_tokens": median([t[0].result.usage.prompt_tokens for t in conversations]),
        "last_turn_prompt_tokens": median([usage.prompt_tokens for usage in last]),
        "last_turn_prefilled_tokens": median([u.prompt_tokens - u.cached_tokens for u in last]),
        "ratios": spread(ratios),
    }
    name = f"first token, turn {TURNS} / turn 1, median of conversations"
    return Report("prefix-reuse", (Figure(name, median(ratios), goal=at_most(1.3)),), raw)
