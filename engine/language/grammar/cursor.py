"""A place in the tokens of a statement, and how nodes are made there.

Nesting is counted while parsing (open brackets and operators that wait for their operand) and over what was
built (a chain of 100 plus signs is a tree of height 100), so that no later walk over the tree can run out of
stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar.words import RESERVED
from engine.language.places import Place, Text, shown
from engine.model.limits import Limits
from tureen.errors import NotSupported, QueryError, SyntaxRefused

N = TypeVar("N", bound=exp.Expr)
Item = TypeVar("Item")

_WORD = re.compile(r"[^\W\d][\w$]*")
NAME_CHARACTERS_MAX = 200
_CHARACTERS = {
    "`": 'write names in double quotes: "name"',
    **dict.fromkeys("\u2018\u2019\u201c\u201d\u201e", "write straight quotes: 'text', \"name\""),
    "\u00a0": "write a plain blank instead of a non-breaking one",
    "\u2013": "write a plain minus sign: -",
    "\u2212": "write a plain minus sign: -",
}
"""Characters that come from other dialects or text programs -> what to write instead."""


class Cursor:
    """``token`` is the next token, an empty one at the end of the text."""

    def __init__(self, text: Text, tokens: list[Token], limits: Limits) -> None:
        self.text = text
        self.limits = limits
        end = Token(TokenType.BREAK, "", start=len(text.sql), end=len(text.sql))
        self._tokens = [*tokens, end, end]
        self._index = 0
        self._depth = 0
        self.token = self._tokens[0]
        self.end = 0  # where the last token that was stepped over ends

    # --- looking and moving

    def peek(self, ahead: int = 1) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Step over the next token and return it."""
        token = self.token
        if token.token_type is not TokenType.BREAK:
            self.end = token.end + 1
            self._index += 1
            self.token = self._tokens[self._index]
        return token

    @property
    def at_end(self) -> bool:
        return self.token.token_type is TokenType.BREAK

    @property
    def word(self) -> str:
        """The next token's word in upper case, '' if it is no unquoted word."""
        return self.token.text.upper() if self.token.token_type is TokenType.VAR else ""

    def word_ahead(self, ahead: int = 1) -> str:
        token = self.peek(ahead)
        return token.text.upper() if token.token_type is TokenType.VAR else ""

    def at(self, kind: TokenType) -> bool:
        return self.token.token_type is kind

    def take(self, kind: TokenType) -> bool:
        """Step over a token of this kind if it is next."""
        if self.token.token_type is kind:
            self.advance()
            return True
        return False

    def listed(self, item: Callable[[], Item]) -> list[Item]:
        """One item or more, commas between them."""
        items = [item()]
        while self.take(TokenType.COMMA):
            items.append(item())
        return items

    def take_words(self, *words: str) -> bool:
        """Step over these words if all are next."""
        for ahead, word in enumerate(words):
            if self.word_ahead(ahead) != word:
                return False
        for _ in words:
            self.advance()
        return True

    def expect(self, kind: TokenType, what: str, hint: str | None = None) -> Token:
        if self.token.token_type is not kind:
            raise self.expected(what, hint)
        return self.advance()

    def expect_word(self, word: str, hint: str | None = None) -> Token:
        if self.word != word:
            raise self.expected(word, hint)
        return self.advance()

    # --- names

    def name(self, what: str) -> exp.Identifier:
        """An identifier: unquoted in lower case, or as quoted."""
        token = self.token
        if token.token_type is TokenType.IDENTIFIER:
            if not token.text:
                raise self.refuse(SyntaxRefused, "a quoted name cannot be empty")
            if any(not char.isprintable() for char in token.text):
                raise self.refuse(SyntaxRefused, "a name cannot contain control characters")
            name = token.text
        elif token.token_type is TokenType.VAR:
            word = token.text.upper()
            if word in RESERVED:
                raise self.refuse(
                    SyntaxRefused,
                    f"expected {what}, found the keyword {word}",
                    hint="a comma before FROM is one too many"
                    if word == "FROM"
                    else f'write "{token.text}" in double quotes if it is a name',
                )
            self.check_word(token)
            name = token.text.lower()
        else:
            raise self.expected(what)
        if len(name) > NAME_CHARACTERS_MAX:
            raise self.place.exceeded("name_characters_max", NAME_CHARACTERS_MAX, len(name))
        self.advance()
        return self.node(exp.Identifier(this=name, quoted=token.token_type is TokenType.IDENTIFIER), token)

    def field(self, what: str) -> exp.Identifier:
        """An identifier where keywords are names: behind a dot, behind AS."""
        token = self.token
        if token.token_type is not TokenType.VAR or self.word not in RESERVED:
            return self.name(what)
        self.advance()
        return self.node(exp.Identifier(this=token.text.lower(), quoted=False), token)

    def check_word(self, token: Token) -> None:
        """Refuse what the tokenizer calls a word only because it knows no better."""
        match = _WORD.match(token.text)
        if match is None or match.end() != len(token.text):
            offset = token.start + (match.end() if match else 0)
            char = self.text.sql[offset]
            seen = char if char.isprintable() else f"U+{ord(char):04X}"
            raise self.text.at(offset).refuse(
                SyntaxRefused, f"unexpected character {seen}", hint=_CHARACTERS.get(char)
            )

    # --- nodes

    def node(self, node: N, token: Token | exp.Expr, *children: exp.Expr) -> N:
        """Note where a node begins and how high it is. Raises LimitExceeded."""
        height = 1
        for child in children:
            below: int = child.meta["height"]
            if below >= height:
                height = below + 1
        start: int = token.start if isinstance(token, Token) else token.meta["start"]
        if height > 2 * self.limits.nesting_max:
            raise self.too_nested(self.text.at(start))
        meta = node.meta
        meta["start"] = start
        meta["height"] = height
        return node

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper. Raises LimitExceeded."""
        self._depth += 1
        if self._depth > self.limits.nesting_max:
            raise self.too_nested(self.place)
        yield
        self._depth -= 1

    def too_nested(self, place: Place) -> QueryError | Exception:
        return place.exceeded(
            "nesting_max", self.limits.nesting_max, hint="nest less: use IN, or fewer brackets and operators"
        )

    # --- refusals

    @property
    def place(self) -> Place:
        return self.text.of_token(self.token)

    def refuse(self, kind: type[QueryError], message: str, *, hint: str | None = None) -> QueryError:
        """An error at the next token."""
        return self.place.refuse(kind, message, hint=hint)

    def not_supported(self, message: str, hint: str, token: Token | None = None) -> QueryError:
        place = self.place if token is None else self.text.of_token(token)
        return place.refuse(NotSupported, message, hint=hint)

    def expected(self, what: str, hint: str | None = None) -> QueryError:
        """``expected .. found ..`` at the next token."""
        if self.token.token_type is TokenType.VAR:
            self.check_word(self.token)
        hint = _CHARACTERS.get(self.token.text[:1], hint)
        return self.refuse(SyntaxRefused, f"expected {what}, found {self.found()}", hint=hint)

    def found(self) -> str:
        token = self.token
        if token.token_type is TokenType.BREAK:
            return "the end of the text"
        if token.token_type is TokenType.STRING:
            return f"the string '{shown(token.text)}'"
        if token.token_type is TokenType.IDENTIFIER:
            return f'the name "{shown(token.text)}"'
        # A parameter below zero stands in brackets.
        kinds = [self.peek(ahead).token_type for ahead in range(4)]
        if kinds == [TokenType.L_PAREN, TokenType.DASH, TokenType.NUMBER, TokenType.R_PAREN]:
            return f"-{shown(self.peek(2).text)}"
        if kinds[:2] == [TokenType.DASH, TokenType.NUMBER]:
            return f"-{shown(self.peek().text)}"
        return shown(token.text)
