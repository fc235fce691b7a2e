"""The chat beside the note editor: it knows the draft, and its answers can go into it."""

import re

from domain.entities.conversation import Draft
from domain.entities.llm import LlmTaskKind
from presentation.controllers.chat import ChatController, ChatUseCases

_BLOCK = re.compile(r"^ {0,3}```[^\n`]*\n(.*?)^ {0,3}```[ \t]*$", re.DOTALL | re.MULTILINE)
_CITATION = re.compile(r"[ \t]?\[\d{1,3}(?:\s*,\s*\d{1,3})*\](?!\()")


class ComposerChatController(ChatController):
    """A conversation about a draft; same kind and flow as any other chat.

    The face keeps `draft` as the editor has it. While the panel is open (`with`) the chat is what the user looks at;
    when it closes, the note below it is again.
    """

    def __init__(
        self,
        use_cases: ChatUseCases,
        *,
        note_id: str | None = None,
        model: str | None = None,
        system: str | None = None,
    ) -> None:
        super().__init__(use_cases, model=model, system=system)
        self.note_id = note_id
        """None while the note has not been saved."""
        self.draft = Draft()

    def twin(self) -> "ComposerChatController":
        """The same conversation about the same draft, apart."""
        twin = ComposerChatController(self._do, note_id=self.note_id, model=self._model, system=self._system)
        twin._conversation, twin._path = self._conversation, self._path
        twin.draft = self.draft
        return twin

    def proposal(self, message_id: str | None = None) -> str:
        """Text for the draft, from the answer named or the last one: what stands in a fence if there is one, else the
        whole, without the numbers of citations. Raises `MessageNotFound`."""
        answer = self._on_path(message_id, "assistant").content
        blocks = _BLOCK.findall(answer)
        text: str = "\n".join(blocks) if blocks else _CITATION.sub("", answer)
        return text.strip()

    def with_proposal(self, message_id: str | None = None) -> Draft:
        """The draft with the proposal in place of what is selected, or at the cursor; without either as a paragraph at
        its end. The editor decides whether to take it. Raises `MessageNotFound`."""
        text = self.proposal(message_id)
        draft = self.draft
        if draft.selection is None:
            before, after = draft.text.rstrip("\n"), ""
            text = f"\n\n{text}\n" if before else f"{text}\n"
        else:
            start, end = draft.selection
            before, after = draft.text[:start], draft.text[max(start, end) :]
        end_of_text = len(before) + len(text)
        return draft.model_copy(
            update={"text": before + text + after, "selection": (end_of_text, end_of_text)}
        )

    def _draft(self) -> tuple[Draft | None, str | None]:
        return self.draft, self.note_id

    def _leave(self) -> None:
        if self.note_id is None:
            self._do.set_foreground(None)
        else:
            self._do.set_foreground(LlmTaskKind.EXTRACT, self.note_id)
