"""ksqlDB: windows behind a stream, aggregates by other names, EMIT CHANGES of definitions.

FROM s WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k
FROM TUMBLE(s, 1 HOUR) GROUP BY window_start, window_end, k
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from engine.language.translation.edits import Edit, Tokens

_NAMES = {"LATEST_BY_OFFSET": "LAST", "EARLIEST_BY_OFFSET": "FIRST"}
_COLUMNS = {"WINDOWSTART": "window_start", "WINDOWEND": "window_end"}
_WINDOW = (
    "a window is in the answer when it closes, and once; ksqlDB gives its result so far, but for EMIT FINAL"
)


def windows_of_groups(tokens: Tokens) -> Iterator[Edit]:
    """The table function around the stream, and the columns of its window in GROUP BY."""
    reads = list(tokens.find("FROM"))
    windows = [
        place
        for place in tokens.find("WINDOW")
        if tokens.word(place + 1) in ("TUMBLING", "HOPPING", "SESSION")
        and tokens.kind(place + 2) is TokenType.L_PAREN
    ]
    groups = list(tokens.find("GROUP", "BY"))
    if len(reads) != 1 or len(windows) != 1 or len(groups) != 1:
        return
    source, window, group = reads[0] + 1, windows[0], groups[0]
    closing = tokens.closing(window + 2)
    if closing is None or not source < window < group or not tokens.is_name(source):
        return
    if any(tokens.word(place) == "JOIN" for place in range(source, window)):
        return
    function = _function(tokens, window, closing, tokens.slice(source, source + 1), _keys(tokens, group + 2))
    if function is None:
        return
    yield Edit(tokens.begin(source), tokens.end(source), function, _WINDOW)
    yield Edit(tokens.end(window - 1), tokens.end(closing), "")
    yield Edit(tokens.begin(group + 2), tokens.begin(group + 2), "window_start, window_end, ")
    for place in range(len(tokens)):
        if tokens.word(place) in _COLUMNS:
            yield Edit(tokens.begin(place), tokens.end(place), _COLUMNS[tokens.word(place)])


def _keys(tokens: Tokens, place: int) -> str | None:
    """The names that GROUP BY groups by, as written; None where it has anything else."""
    first = place
    while tokens.is_name(place):
        place += 1
        if tokens.kind(place) is not TokenType.COMMA:
            break
        place += 1
    behind = tokens.kind(place)
    is_whole = tokens.word(place) in ("HAVING", "EMIT", "LIMIT") or behind in (None, TokenType.SEMICOLON)
    return tokens.slice(first, place) if is_whole and place > first else None


def _function(tokens: Tokens, window: int, closing: int, source: str, keys: str | None) -> str | None:
    kind, first = tokens.word(window + 1), window + 3
    if kind == "SESSION":
        gap = _length(tokens, first)
        if gap is None or keys is None or first + 2 != closing:
            return None
        return f"SESSION({source} PARTITION BY {keys}, {gap})"
    size = _length(tokens, first + 1) if tokens.word(first) == "SIZE" else None
    if size is None:
        return None
    if kind == "TUMBLING":
        return f"TUMBLE({source}, {size})" if first + 3 == closing else None
    is_hop = tokens.kind(first + 3) is TokenType.COMMA and tokens.words(first + 4, "ADVANCE", "BY")
    slide = _length(tokens, first + 6) if is_hop else None
    if slide is None or first + 8 != closing:
        return None
    return f"HOP({source}, {slide}, {size})"


def _length(tokens: Tokens, place: int) -> str | None:
    """``5 MINUTES``; None where there is no such length of time."""
    if tokens.kind(place) is not TokenType.NUMBER or not tokens.word(place + 1):
        return None
    return f"{tokens.text(place)} {tokens.word(place + 1)}"


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
