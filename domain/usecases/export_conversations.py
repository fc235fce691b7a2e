"""A conversation as Markdown: every branch of it, and what its answers were given to draw on."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from domain.entities.conversation import ChatMessage, Citation
from domain.entities.note import clean_title

_FROM_CHARACTERS = 80
_END = {
    "stopped": "This answer was stopped.",
    "failed": "This answer failed.",
    "streaming": "This answer was still being written.",
}


def conversation_markdown(
    messages: Sequence[ChatMessage], leaf_id: str | None, note_files: Mapping[str, str]
) -> str:
    """The branch that is shown first and to its end; of every other one what differs.

    `messages` are those of every branch, oldest first; `note_files` are the names of exported notes by their ids.
    """
    by_id = {message.id: message for message in messages}
    parts: list[str] = []
    for number, branch in enumerate(_branches(messages, leaf_id)):
        if number:
            parent = by_id.get(branch[0].parent_id or "")
            start = _begun(parent.content) if parent is not None else "the beginning"
            parts.append(f"## Another branch, from: {start}\n")
        parts += [_turn(message, note_files) for message in branch]
    return "\n".join(parts)


def _branches(messages: Sequence[ChatMessage], leaf_id: str | None) -> Iterator[list[ChatMessage]]:
    """Each message once, whatever the parents say."""
    by_id = {message.id: message for message in messages}
    children: dict[str | None, list[str]] = {}
    for message in messages:
        children.setdefault(message.parent_id, []).append(message.id)
    told: set[str] = set()
    for begin in ([leaf_id] if leaf_id in by_id else []) + [message.id for message in messages]:
        if begin is None or begin in told:
            continue
        branch: list[str] = []
        up: str | None = begin
        while up in by_id and up not in told:
            told.add(up)
            branch.insert(0, up)
            up = by_id[up].parent_id
        while below := [child for child in children.get(branch[-1], []) if child not in told]:
            told.add(below[-1])
            branch.append(below[-1])
        yield [by_id[each] for each in branch]


def _turn(message: ChatMessage, note_files: Mapping[str, str]) -> str:
    model = f" ({message.model})" if message.role == "assistant" and message.model else ""
    parts = [f"**{'You' if message.role == 'user' else 'UNIUN'}**{model}\n"]
    if message.thinking.strip():
        quoted = (f"> {line}".rstrip() for line in message.thinking.strip().splitlines())
        parts.append("> Thinking:\n>\n" + "\n".join(quoted) + "\n")
    if message.content:
        parts.append(f"{message.content}\n")
    if message.state != "complete":
        parts.append(f"*{_END[message.state]}*{f' {message.error}' if message.error else ''}\n")
    if message.citations:
        lines = "".join(f"- {_note(each, note_files)}\n" for each in message.citations)
        parts.append(f"Notes that this answer was given:\n\n{lines}")
    return "\n".join(parts)


def _note(citation: Citation, note_files: Mapping[str, str]) -> str:
    """Brackets of a title must not end the link's text."""
    title = clean_title(citation.title) or "Untitled"
    title = "".join(f"\\{char}" if char in "\\[]" else char for char in title)
    file = note_files.get(citation.note_id)
    name = f"[{title}](../notes/{quote(file)})" if file is not None else f"{title} (deleted since)"
    writer = ""
    if citation.written_by is not None:
        writer = f", written by {f'the Gana {citation.written_by}' if citation.written_by else 'a Gana'}"
    return f"[{citation.number}] {name}{writer}"


def _begun(text: str) -> str:
    line = clean_title(text) or "an empty message"
    return line if len(line) <= _FROM_CHARACTERS else f"{line[: _FROM_CHARACTERS - 1].rstrip()}…"
