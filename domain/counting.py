"""Numbers with the word for what is counted."""


def counted(count: int, one: str, many: str = "") -> str:
    """As in 1 note, 2 notes, 1,203 notes; `many` where it is not the word with an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
