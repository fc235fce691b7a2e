import itertools

from hypothesis import given
from hypothesis import strategies as st

from domain.entities.llm import Message
from domain.usecases.history import estimate_tokens, trim_history


def user(text: str) -> Message:
    return Message(role="user", content=text)


def bot(text: str) -> Message:
    return Message(role="assistant", content=text)


SYSTEM = Message(role="system", content="Be brief.")


def conversation(turns: int, size: int = 300) -> list[Message]:
    return [
        SYSTEM,
        *(m for n in range(turns) for m in (user(f"{n} " + "q" * size), bot(f"{n} " + "a" * size))),
    ]


def test_everything_stays_while_it_fits() -> None:
    messages = conversation(3)
    assert trim_history(messages, 10_000) == tuple(messages)


def test_of_nothing_nothing_is_sent() -> None:
    assert trim_history([], 100) == ()
    assert trim_history([SYSTEM], 100) == (SYSTEM,)


def test_the_oldest_turns_go_first_and_the_system_message_stays() -> None:
    messages = conversation(10)
    kept = trim_history(messages, 1000)
    assert kept[0] == SYSTEM
    assert list(kept[1:]) == messages[-(len(kept) - 1) :]
    assert kept[1].role == "user"


def test_a_last_turn_that_is_too_long_stays_for_the_engine_to_refuse() -> None:
    assert trim_history([user("short"), bot("yes"), user("x" * 9000)], 100) == (user("x" * 9000),)


def test_the_cut_stays_for_several_turns_so_that_the_prefix_can_be_used_again() -> None:
    firsts = [trim_history(conversation(turns), 3000)[1] for turns in range(1, 60)]
    moves = sum(a != b for a, b in itertools.pairwise(firsts))
    assert 1 < moves < 20  # 46 if one turn were dropped at each turn


def test_text_outside_ascii_counts_by_bytes() -> None:
    assert estimate_tokens(user("ω" * 30)) > estimate_tokens(user("o" * 60))


TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=400)), min_size=1, max_size=30
)


@given(TURNS, st.integers(50, 2000))
def test_what_is_kept_is_the_end_of_the_conversation_and_fits(
    turns: list[tuple[str, str]], budget: int
) -> None:
    messages = [Message.model_validate({"role": role, "content": text}) for role, text in turns]
    kept = trim_history(messages, budget)
    assert kept
    assert list(kept) == messages[len(messages) - len(kept) :]
    more_than_one_turn = any(message.role == "user" for message in kept[1:])
    assert not more_than_one_turn or sum(map(estimate_tokens, kept)) <= budget
