"""The YAML block at the head of a note, read with suspicion."""

from datetime import date, datetime
from typing import Any

import yaml

MAX_CHARACTERS = 65_536
MAX_DEPTH = 32
_FENCE = "---"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is not in every wheel


class BrokenFrontMatter(Exception):
    """It is there and cannot be used; the message is a reason without a capital or a full stop."""


def split_front_matter(text: str) -> tuple[str | None, str]:
    """(YAML, rest). No YAML if the text does not begin with a line --- that another such line, or ..., closes."""
    if not text.startswith(_FENCE) or text.partition("\n")[0].rstrip() != _FENCE:
        return None, text
    start = text.find("\n") + 1
    if not start:
        return None, text
    at = start
    while at < len(text) and at - start <= MAX_CHARACTERS:
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        if line.rstrip() in (_FENCE, "..."):
            return text[start:at], text[end + 1 :] if end >= 0 else ""
        if end < 0:
            break
        at = end + 1
    return None, text


def read_front_matter(text: str) -> dict[str, Any]:
    """A mapping with text for keys. Aliases, deep nesting and everything past plain YAML are refused.

    Raises `BrokenFrontMatter`.
    """
    try:
        depth = 0
        # Aliases make a few lines into billions of values, so they are refused before anything is built.
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                mark = event.start_mark
                where = f"line {mark.line + 2}" if mark is not None else "it"
                raise BrokenFrontMatter(f"{where} uses a YAML alias")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise BrokenFrontMatter(f"it is nested more than {MAX_DEPTH} deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
        values = yaml.load(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 2}: " if error.problem_mark is not None else ""
        raise BrokenFrontMatter(f"{line}{error.problem or 'it is not YAML'}") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BrokenFrontMatter(str(error).splitlines()[0] if str(error) else "it is not YAML") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise BrokenFrontMatter("it is not a list of keys and values")
    return {str(key).strip().lower(): value for key, value in values.items()}


def words(value: object, *, separators: str) -> list[str]:
    """The texts of a list, or of one text that is a list in disguise."""
    if isinstance(value, str):
        for separator in separators:
            value = value.replace(separator, "\n")
        return [part.strip() for part in value.split("\n") if part.strip()]
    if isinstance(value, list):
        return [str(part).strip() for part in value if isinstance(part, str | int | float | date)]
    if isinstance(value, int | float | date):
        return [str(value)]
    return []


def moment(value: object) -> datetime | None:
    """An aware time; one without a zone is the machine's own. None for what is no time."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - given its zone below
    if not isinstance(value, datetime):
        return None
    try:
        return value.astimezone()
    except (OverflowError, ValueError, OSError):  # the years 1 and 9999 have no room for a zone
        return None
