"""Changes of a text at some places, which leave all the rest as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from engine.language.dialect import tokenize
from engine.language.places import Text


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters from start to end of a text, end excluded, are these instead."""

    start: int
    end: int
    text: str


def edited(sql: str, edits: Sequence[Edit]) -> str:
    """The text with edits that do not overlap."""
    for edit in sorted(edits, key=lambda one: one.start, reverse=True):
        sql = sql[: edit.start] + edit.text + sql[edit.end :]
    return sql


class Tokens:
    """The tokens of a text, found by where they stand."""

    def __init__(self, sql: str) -> None:
        self._tokens = tokenize(Text(sql))
        self._places = {token.start: place for place, token in enumerate(self._tokens)}

    def end_of(self, start: int) -> int:
        """Where the token that begins here ends."""
        return self._tokens[self._places[start]].end + 1

    def duration(self, start: int) -> tuple[int, int]:
        """Finds where the length of a window that begins with RANGE starts and ends, in brackets or not; all
        that qualifies the length is in it. start: where the window begins.
        """
        place = self._places[start]
        while self._tokens[place].text.upper() != "RANGE":
            place += 1
        first = place = place + 1
        while not _ends_length(self._tokens[place]):
            place += 1
        return self._tokens[first].start, self._tokens[place - 1].end + 1

    def bracket(self, start: int) -> tuple[int, int]:
        """A window that begins here, with its brackets."""
        place = self._places[start]
        if self._tokens[place].token_type is not TokenType.L_BRACKET:
            place -= 1
        first = self._tokens[place].start
        while self._tokens[place].token_type is not TokenType.R_BRACKET:
            place += 1
        return first, self._tokens[place].end + 1

    def call(self, start: int, word: str) -> tuple[int, int] | None:
        """``word(...)`` at or after a place, with its brackets; None where there is none."""
        for place in range(self._places[start], len(self._tokens)):
            if self._tokens[place].text.upper() == word:
                end = place
                while self._tokens[end].token_type is not TokenType.R_PAREN:
                    end += 1
                return self._tokens[place].start, self._tokens[end].end + 1
        return None


def _ends_length(token: Token) -> bool:
    words = ("SLIDE", "WHERE")
    return token.token_type is TokenType.R_BRACKET or token.text.upper() in words
