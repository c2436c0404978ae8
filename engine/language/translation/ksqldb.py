"""ksqlDB: columns of windows and aggregates by other names, members, EMIT CHANGES of definitions."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from engine.language.translation.edits import Edit, Tokens

_NAMES = {"LATEST_BY_OFFSET": "LAST", "EARLIEST_BY_OFFSET": "FIRST"}
_COLUMNS = {"WINDOWSTART": "window_start", "WINDOWEND": "window_end"}
_WINDOWS = ("TUMBLING", "HOPPING", "SESSION")
_CLOSED = (
    "a window is in the answer when it closes, and once; ksqlDB gives its result so far, but for EMIT FINAL"
)


def window_columns(tokens: Tokens) -> Iterator[Edit]:
    """WINDOWSTART and WINDOWEND where a text has windows; that these close is told once."""
    windows = [place for place in tokens.find("WINDOW") if tokens.word(place + 1) in _WINDOWS]
    for place in windows[:1]:
        yield Edit(tokens.begin(place), tokens.begin(place), "", _CLOSED)
    for place in range(len(tokens)) if windows else ():
        if tokens.word(place) in _COLUMNS:
            yield Edit(tokens.begin(place), tokens.end(place), _COLUMNS[tokens.word(place)])


def members(tokens: Tokens) -> Iterator[Edit]:
    """``a->b``, the member of a STRUCT: here ``->`` is of JSON."""
    for place in range(len(tokens)):
        if tokens.kind(place) is TokenType.ARROW and tokens.is_name(place + 1):
            yield Edit(tokens.begin(place), tokens.end(place), ".")


def renamed_aggregates(tokens: Tokens) -> Iterator[Edit]:
    """COUNT_DISTINCT(x), LATEST_BY_OFFSET(x) and EARLIEST_BY_OFFSET(x)."""
    for place in range(len(tokens)):
        if tokens.kind(place + 1) is not TokenType.L_PAREN:
            continue
        word = tokens.word(place)
        if word == "COUNT_DISTINCT":
            yield Edit(tokens.begin(place), tokens.end(place + 1), "COUNT(DISTINCT ")
        elif word in _NAMES:
            yield Edit(
                tokens.begin(place),
                tokens.end(place),
                _NAMES[word],
                f"{_NAMES[word]} goes by the time of rows, NULL is a value to it; {word} goes by offsets",
            )


def emitting_definitions(tokens: Tokens) -> Iterator[Edit]:
    """CREATE STREAM | TABLE ... AS SELECT ... EMIT CHANGES: here a definition emits nothing."""
    if tokens.word(0) != "CREATE" or not any(True for _ in tokens.find("AS", "SELECT")):
        return
    for place in tokens.find("EMIT", "CHANGES"):
        yield Edit(
            tokens.end(place - 1),
            tokens.end(place + 1),
            "",
            "it has no topic: CREATE QUERY name AS SELECT * FROM it EMIT CHANGES INTO name writes one",
        )
