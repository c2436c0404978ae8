"""Edits of a text by its tokens: what a rewriting reads and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters begin <= place < end give way to a text. remark: what differs, for people."""

    begin: int
    end: int
    text: str
    remark: str | None = None


class Tokens:
    """The tokens of a text, with words in upper case. O(1) a call but where it is said."""

    def __init__(self, sql: str, tokens: Sequence[Token]) -> None:
        self.sql = sql
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def word(self, place: int) -> str:
        """The unquoted word at a place, in upper case; "" of anything else."""
        if not 0 <= place < len(self._tokens):
            return ""
        token = self._tokens[place]
        return token.text.upper() if token.token_type is TokenType.VAR else ""

    def is_name(self, place: int) -> bool:
        """Whether a name may stand at a place: a word or a quoted name."""
        if not 0 <= place < len(self._tokens):
            return False
        return self._tokens[place].token_type in (TokenType.VAR, TokenType.IDENTIFIER)

    def kind(self, place: int) -> TokenType | None:
        """The kind of a token; None behind the last."""
        return self._tokens[place].token_type if 0 <= place < len(self._tokens) else None

    def text(self, place: int) -> str:
        """The text of a token; of a string without its quotes."""
        return self._tokens[place].text if 0 <= place < len(self._tokens) else ""

    def begin(self, place: int) -> int:
        """The first character of a token, or the end of the text."""
        return self._tokens[place].start if place < len(self._tokens) else len(self.sql)

    def end(self, place: int) -> int:
        """The first character behind a token."""
        return self._tokens[place].end + 1

    def words(self, place: int, *words: str) -> bool:
        """Whether these words stand from a place on."""
        return all(self.word(place + ahead) == word for ahead, word in enumerate(words))

    def find(self, *words: str) -> Iterator[int]:
        """The places at which these words stand. O(tokens)."""
        return (place for place in range(len(self)) if self.words(place, *words))


Rewriting = Callable[[Tokens], Iterable[Edit]]


def applied(sql: str, edits: Iterable[Edit]) -> str:
    """The text with edits, which do not overlap."""
    parts, place = [], 0
    for edit in sorted(edits, key=lambda one: (one.begin, one.end)):
        assert edit.begin >= place, "edits overlap"
        parts += [sql[place : edit.begin], edit.text]
        place = edit.end
    return "".join([*parts, sql[place:]])
