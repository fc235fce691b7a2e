"""What the user does with notes."""

from collections.abc import Mapping, Sequence

from domain.entities.note import (
    MAX_NOTE_CHARACTERS,
    MAX_TAG_CHARACTERS,
    Note,
    NoteDetails,
    NoteDraft,
    NoteLine,
    ParsedNote,
    clean_title,
    hash_content,
    normal_tag,
)
from domain.errors import InvalidRequest, NoteChanged, NoteNotFound
from domain.repositories.cards import CardRepository
from domain.repositories.identity import Identities
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.note_changes import NoteChanges
from domain.repositories.note_parser import NoteParser
from domain.repositories.notes import NoteRepository

UNTITLED = "Untitled"
SHORTEST_BEGINNING = 4
"""Characters of an id that name a note."""
MAX_TAGS = 400
"""Of its text and its own."""
COMPLETIONS = 8
_UNLINKABLE = frozenset("[]|#\n")
_TITLE_FROM_LINE = 80
_MOST_BACKLINKS = 200
_SCANNED_FOR_FILES = 100_000
"""Characters, which take 80 ms. Links to notes are kept, those to files are not."""
_CHANGED = "The note was not saved: it has been changed by something else meanwhile. Edit it again."
_GENERATED = ("gana", "nataraj")


class ComposeNote:
    """Makes a note of a draft: title, tags and links are read out of the text. Nothing is stored."""

    def __init__(self, parser: NoteParser, identities: Identities) -> None:
        self._parser = parser
        self._identities = identities

    def __call__(self, draft: NoteDraft) -> Note:
        """Raises `InvalidRequest`. What a model wrote cannot tag itself: only the draft's tags count then."""
        _check_text(draft.text)
        generated = draft.source in _GENERATED
        parsed = self._parser.parse(draft.text, front_matter=not generated)
        text = parsed.text
        title = clean_title(draft.title) or _own_title(parsed)
        tags = _tags((*draft.tags, *(() if generated else parsed.tags)))
        now = self._identities.now()
        return Note(
            id=self._identities.new_id(),
            title=title,
            text=text,
            tags=tags,
            aliases=tuple(dict.fromkeys((*draft.aliases, *parsed.aliases))),
            links=parsed.links,
            source=draft.source,
            origin=draft.origin,
            created_at=draft.created_at or parsed.created_at or now,
            changed_at=now,
            content_hash=hash_content(title, text, tags),
        )


class CreateNoteUseCase:
    """Keeps a new note; its vector and its extraction are queued with it."""

    def __init__(self, compose: ComposeNote, notes: NoteRepository, changes: NoteChanges) -> None:
        self._compose = compose
        self._notes = notes
        self._changes = changes

    async def __call__(self, text: str, *, title: str = "", tags: Sequence[str] = ()) -> Note:
        """Raises `InvalidRequest` for a note that is empty, too long or no text."""
        if not text.strip() and not title.strip():
            raise InvalidRequest("The note is empty. Write a title or a text.")
        _check_text(text)
        note = self._compose(NoteDraft(title=clean_title(title), text=text, tags=_tags(tags)))
        await self.keep(note)
        return note

    def blank(self, note_id: str) -> Note:
        """One with nothing in it, which is kept nowhere until `keep`."""
        return self._compose(NoteDraft(title=UNTITLED, text="")).model_copy(update={"id": note_id})

    async def keep(self, note: Note) -> bool:
        """False, and nothing changes, where there is one with its id."""
        if new := await self._notes.begin(note):
            self._changes.announce([note.id])
        return new


class EditNoteUseCase:
    """Changes a note. Tags and links in the text are read anew; other tags stay unless they are given."""

    def __init__(
        self, parser: NoteParser, notes: NoteRepository, identities: Identities, changes: NoteChanges
    ) -> None:
        self._parser = parser
        self._notes = notes
        self._identities = identities
        self._changes = changes

    async def __call__(
        self,
        note_id: str,
        *,
        title: str | None = None,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        aliases: Sequence[str] | None = None,
        seen: str | None = None,
    ) -> Note:
        """`tags` are all that are not in the text. A title that came from the text follows it, unless one is given.
        `seen` is the content hash of what was edited, if the note must still be that.

        Raises `NoteNotFound`, `InvalidRequest`, `NoteChanged`. Nothing is saved, and no time changes, if nothing is new.
        """
        old = await self._notes.get(note_id)
        if seen is not None and old.content_hash != seen:
            raise NoteChanged(_CHANGED)
        _check_text(text or "")
        before = self._parser.parse(old.text, front_matter=False)
        after = before if text is None else self._parser.parse(text, front_matter=False)
        if title is None:
            title = old.title if old.title != _own_title(before) else _own_title(after)
        title = clean_title(title) or _own_title(after)
        own_tags = tags if tags is not None else [tag for tag in old.tags if tag not in before.text_tags]
        new_tags = _tags((*own_tags, *after.tags))
        new = old.model_copy(
            update={
                "title": title,
                "text": after.text,
                "tags": new_tags,
                "aliases": old.aliases if aliases is None else tuple(dict.fromkeys(aliases)),
                "links": after.links,
                "content_hash": hash_content(title, after.text, new_tags),
            }
        )
        if new == old:
            return old
        new = new.model_copy(update={"changed_at": self._identities.now()})
        if not await self._notes.replace(new, old.content_hash):
            raise NoteChanged(_CHANGED)
        self._changes.announce([new.id])
        return new

    def own_tags(self, note: Note) -> tuple[str, ...]:
        """Those that are not written in its text, which alone can be taken off it."""
        inside = self._parser.parse(note.text, front_matter=False).text_tags
        return tuple(tag for tag in note.tags if tag not in inside)

    async def document(self, note_id: str) -> tuple[str, str]:
        """(the note as one text for an editor, its title and other tags above it; its content hash).

        Raises `NoteNotFound`.
        """
        note = await self._notes.get(note_id)
        front = {"title": note.title, "tags": list(self.own_tags(note)), "aliases": list(note.aliases)}
        return self._parser.render(front, note.text), note.content_hash

    async def rewrite(self, note_id: str, document: str, seen: str) -> Note:
        """Takes such a text back; `seen` is the content hash that came with it.

        Raises `InvalidRequest`, and changes nothing, if what is above the text cannot be read or the note is another now
        (`NoteChanged`).
        """
        if (await self._notes.get(note_id)).content_hash != seen:
            raise NoteChanged(_CHANGED)
        parsed = self._document(document)
        own_tags = [tag for tag in parsed.tags if tag not in parsed.text_tags]
        return await self(
            note_id,
            title=parsed.title or "",
            text=parsed.text.removeprefix("\n"),
            tags=own_tags,
            aliases=parsed.aliases,
            seen=seen,
        )

    def preview(self, document: str) -> tuple[str, int]:
        """(title, characters of the text) that a note has after `rewrite`. Raises `InvalidRequest` like that."""
        parsed = self._document(document)
        return clean_title(parsed.title or "") or _own_title(parsed), len(parsed.text.removeprefix("\n"))

    def _document(self, document: str) -> ParsedNote:
        _check_text(document)
        if not document.strip():
            raise InvalidRequest(
                "The note was not changed: the file is empty. To be rid of the note, delete it."
            )
        parsed = self._parser.parse(document)
        if parsed.flaws:
            raise InvalidRequest(f"The note was not saved. {parsed.flaws[0]}")
        return parsed


class TagNoteUseCase:
    """Adds and removes tags that are not in the text."""

    def __init__(self, edit: EditNoteUseCase, notes: NoteRepository, parser: NoteParser) -> None:
        self._edit = edit
        self._notes = notes
        self._parser = parser

    async def __call__(self, note_id: str, add: Sequence[str], remove: Sequence[str]) -> Note:
        """Raises `NoteNotFound`, and `InvalidRequest` for a tag to remove that is written in the text."""
        note = await self._notes.get(note_id)
        inside = self._parser.parse(note.text, front_matter=False).text_tags
        gone = {normal_tag(tag) for tag in remove}
        if stuck := sorted(gone.intersection(inside)):
            raise InvalidRequest(
                f"The tag {stuck[0]} is written in the text of the note. Remove it there: uniun notes edit {note_id}"
            )
        kept = [tag for tag in note.tags if tag not in inside and tag not in gone]
        return await self._edit(note_id, tags=[*kept, *add])


class DeleteNoteUseCase:
    """Deletes a note with everything that it had asserted, and the cards of the deck that were made of it."""

    def __init__(self, notes: NoteRepository, cards: CardRepository) -> None:
        self._notes = notes
        self._cards = cards

    async def __call__(self, note_id: str, *, again: bool = False) -> None:
        """Raises `NoteNotFound`. A file that it came from stays; imports leave it out until it changes, unless they may
        take it `again`."""
        await self._notes.delete(note_id, again=again)
        await self._cards.forget_notes([note_id])

    async def if_blank(self, note_id: str) -> bool:
        """A note that was written here and in which nothing is left goes. False, and nothing happens, for any other, and for
        one that has tags, is in a Manas or is linked to."""
        found = await self._notes.many([note_id])
        if not found or found[0].source != "typed":
            return False
        if gone := await self._notes.take_back(note_id, hash_content(UNTITLED, "", ())):
            await self._cards.forget_notes([note_id])
        return gone


class FindNoteUseCase:
    """What the user typed to the id of one note."""

    def __init__(self, notes: NoteRepository) -> None:
        self._notes = notes

    async def __call__(self, reference: str) -> str:
        """An id, the beginning of one (`SHORTEST_BEGINNING` characters or more), or a title, whatever its case.

        Raises `NoteNotFound`, and `InvalidRequest` if several fit.
        """
        if await self._notes.many([reference]):
            return reference
        wanted = clean_title(reference)
        hits = await self._notes.search(wanted, limit=100) if wanted else ()
        found = [hit.note_id for hit in hits if hit.title.casefold() == wanted.casefold()]
        if not found and len(reference) >= SHORTEST_BEGINNING:
            found = [each for each in await self._notes.note_ids(None) if each.startswith(reference.lower())]
        if len(found) > 1:
            some = ", ".join(each[:12] for each in found[:5])
            raise InvalidRequest(
                f"{len(found)} notes are called {reference}. Name one by its id, of which these are the beginnings: {some}."
            )
        if not found:
            short = (
                f"The beginning of an id needs {SHORTEST_BEGINNING} characters at least. "
                if 0 < len(reference) < SHORTEST_BEGINNING
                else ""
            )
            raise NoteNotFound(f"There is no note {reference}. {short}List them with: uniun notes list")
        return found[0]


class FollowLinkUseCase:
    """From what a link says to the note that it means."""

    def __init__(self, notes: NoteRepository) -> None:
        self._notes = notes

    async def __call__(self, target: str) -> str | None:
        """The id; none while no such note exists."""
        name = target.removesuffix(".md").strip()
        return await self._notes.link_target(name) if name else None

    async def namesake(self, note: Note) -> str | None:
        """Another note with the same title, to which links of that name lead; none if they lead to the note itself."""
        found = await self._notes.link_target(note.title)
        others = await self._notes.many([found]) if found is not None and found != note.id else ()
        return found if others and others[0].title.casefold() == note.title.casefold() else None


class CompleteTitleUseCase:
    """From the first letters to the titles that a link may name."""

    def __init__(self, notes: NoteRepository) -> None:
        self._notes = notes

    async def __call__(self, beginning: str) -> tuple[str, ...]:
        """At most `COMPLETIONS`; titles that a [[link]] cannot spell are left out."""
        found = await self._notes.titles(beginning, limit=3 * COMPLETIONS)
        nameable = (title for title in found if title != UNTITLED and not _UNLINKABLE.intersection(title))
        return tuple(nameable)[:COMPLETIONS]


class GetNoteUseCase:
    """A note with what is known about it."""

    def __init__(self, parser: NoteParser, notes: NoteRepository, knowledge: KnowledgeRepository) -> None:
        self._parser = parser
        self._notes = notes
        self._knowledge = knowledge

    async def __call__(self, note_id: str) -> NoteDetails:
        """Raises `NoteNotFound`."""
        note = await self._notes.get(note_id)
        links = await self._notes.links_to(note_id)
        leading = await self._notes.links_from(note_id)
        sources = tuple(dict.fromkeys(link.source_id for link in links if link.source_id != note_id))
        return NoteDetails(
            note=note,
            links=tuple(link for link in leading if not link.to_file),
            attachments=self._files(note, {link.target for link in leading if not link.to_file}),
            backlinks=tuple(_line(each) for each in await self._notes.many(sources[:_MOST_BACKLINKS])),
            concepts=await self._knowledge.concepts_of([note_id]),
            summary=await self._knowledge.summary(note_id),
            pending=await self._knowledge.pending_of(note_id),
        )

    def _files(self, note: Note, notes: set[str]) -> tuple[str, ...]:
        """Without such as are the names of notes."""
        parsed = self._parser.parse(note.text[:_SCANNED_FOR_FILES], front_matter=False)
        return tuple(name for name in parsed.attachments if name not in notes)


class ListNotesUseCase:
    """Notes and tags, to choose from."""

    def __init__(self, notes: NoteRepository) -> None:
        self._notes = notes

    async def __call__(
        self, *, tag: str | None = None, manas_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[NoteLine, ...]:
        """Newest change first. A tag finds those nested below it too."""
        wanted = normal_tag(tag) if tag is not None else None
        return await self._notes.lines(tag=wanted, manas_id=manas_id, limit=limit, offset=offset)

    async def tags(self) -> dict[str, int]:
        """Tag to number of notes, most used first."""
        counts = await self._notes.tags()
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    async def missing(self, note_ids: Sequence[str]) -> tuple[str, ...]:
        """Those of which there is no note."""
        there = {note.id for note in await self._notes.many(note_ids)}
        return tuple(note_id for note_id in note_ids if note_id not in there)

    async def same(self, texts: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
        """Ids of those notes that have this title and this text already; a note that was given no title has any."""
        found = await self._notes.many(list(texts))
        return tuple(
            note.id for note in found if texts[note.id] in ((note.title, note.text), ("", note.text))
        )

    async def count(self, *, tag: str | None = None, manas_id: str | None = None) -> int:
        """Of all notes, or of those that would be listed."""
        return await self._notes.count(tag=normal_tag(tag) if tag is not None else None, manas_id=manas_id)


def title_of(text: str) -> str:
    """The first line that says something, as a title."""
    for line in text.split("\n", 200)[:200]:
        if title := clean_title(line.strip().lstrip("#>*-+ \t")):
            return title if len(title) <= _TITLE_FROM_LINE else f"{title[:_TITLE_FROM_LINE].rstrip()}…"
    return UNTITLED


def _own_title(parsed: ParsedNote) -> str:
    return parsed.title or title_of(parsed.text)


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    normal = {normal_tag(tag) for tag in tags} - {""}
    if len(normal) > MAX_TAGS:
        raise InvalidRequest(f"A note has {MAX_TAGS} tags at most; these are {len(normal)}. Remove some.")
    if too_long := next((tag for tag in normal if len(tag) > MAX_TAG_CHARACTERS), None):
        raise InvalidRequest(
            f"The tag {too_long[:20]}… has more than {MAX_TAG_CHARACTERS} characters. Shorten it."
        )
    return tuple(sorted(normal))


def _check_text(text: str) -> None:
    if len(text) > MAX_NOTE_CHARACTERS:
        raise InvalidRequest(
            f"A note holds {MAX_NOTE_CHARACTERS} characters; this one has {len(text)}. Split it."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"Character {error.start + 1} of the note is half a character, or a byte that was not UTF-8. Remove it."
        ) from None


def _line(note: Note) -> NoteLine:
    return NoteLine(
        id=note.id,
        title=note.title,
        tags=note.tags,
        source=note.source,
        changed_at=note.changed_at,
        characters=len(note.text),
    )
