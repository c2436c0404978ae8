"""``t FOR SYSTEM_TIME AS OF x`` of a table in a join: here its declaration says so, NON RETROACTIVE."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from engine.language.translation.edits import Edit, Tokens

_BEHIND = ("AS", "ON", "WHERE", "JOIN", "LEFT", "INNER", "GROUP")


_DECLARED = (
    "declare the table {} NON RETROACTIVE, for its version at the instant of the row that is joined; a table "
    "that is not is joined as it is now"
)


def versions_of_tables(tokens: Tokens) -> Iterator[Edit]:
    """Leave the clause out. x: a column, perhaps with the name of its stream, or PROCTIME()."""
    for place in tokens.find("FOR", "SYSTEM_TIME", "AS", "OF"):
        end = place + 4
        if tokens.word(end) == "PROCTIME" and tokens.kind(end + 1) is TokenType.L_PAREN:
            end += 3
        elif tokens.is_name(end):
            end += 3 if tokens.kind(end + 1) is TokenType.DOT else 1
        else:
            continue
        if not (tokens.is_name(end) or tokens.word(end) in _BEHIND):
            continue
        yield Edit(
            tokens.begin(place),
            tokens.begin(end),
            "",
            _DECLARED.format(tokens.text(place - 1)),
        )


def joined_tables(tokens: Tokens) -> Iterator[Edit]:
    """Tell that ksqlDB joins a stream with the version of a table at the instant of the row. A text does not
    say which of its names are tables.
    """
    for place in tokens.find("JOIN"):
        if tokens.is_name(place + 1) and not any(True for _ in tokens.find("WITHIN")):
            begin = tokens.begin(place)
            yield Edit(begin, begin, "", "where it is one, " + _DECLARED.format(tokens.text(place + 1)))
