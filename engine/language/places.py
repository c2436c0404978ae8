"""Where in a text something stands, and refusals that say it.

Lines and columns count from 1, columns in characters. They are computed from offsets when an error is made:
O(text).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from engine.language.tracing import Trace
from engine.model.expressions import Literal
from tureen.errors import LimitExceeded, QueryError, UnknownColumn, UnknownSource

SHOWN_CHARACTERS_MAX = 60
WINDOW_COLUMNS = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class Place:
    """An offset in a text, which may be its end."""

    sql: str
    offset: int

    @property
    def line(self) -> int:
        return self.sql.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int:
        return self.offset - self.sql.rfind("\n", 0, self.offset)

    def refuse(self, kind: type[QueryError], message: str, *, hint: str | None = None) -> QueryError:
        """An error of ``kind`` that stands here."""
        return kind(message, hint=hint, line=self.line, column=self.column)

    def exceeded(
        self, limit: str, allowed: int, got: int | None = None, *, hint: str | None = None
    ) -> LimitExceeded:
        return LimitExceeded(limit, allowed, got, hint=hint, line=self.line, column=self.column)

    def unknown_column(
        self, name: str, candidates: Iterable[str], *, perhaps_text: bool = False, hint: str | None = None
    ) -> UnknownColumn:
        """``perhaps_text``: the name, where no column's is like it, may have been meant as a string.
        ``hint``: in place of the names that are like it.
        """
        if hint is not None:
            return UnknownColumn(shown(name), hint=hint, line=self.line, column=self.column)
        known = list(candidates)
        hint = did_you_mean(name, known)
        if name.lower() in WINDOW_COLUMNS and not _like(name, known):
            hint = f"{name.lower()} is a column of windows: FROM TUMBLE(s, INTERVAL '1 minute')"
        elif perhaps_text and "'" not in name and name.isprintable() and not _like(name, known):
            quotes = f"write a string in single quotes: '{shown(name)}'"
            hint = f"{hint}; {quotes}" if hint else quotes
        return UnknownColumn(shown(name), hint=hint, line=self.line, column=self.column)

    def unknown_source(self, name: str, candidates: Iterable[str]) -> UnknownSource:
        hint = did_you_mean(name, candidates) or "make it with CREATE STREAM first"
        return UnknownSource(shown(name), hint=hint, line=self.line, column=self.column)


@dataclass(frozen=True, slots=True)
class Text:
    """A statement's text. ``trace``: notes what becomes of its literals, where somebody wants to know."""

    sql: str
    trace: Trace | None = None

    def literal(self, node: exp.Expr, literal: Literal, negative: bool = False) -> Literal:
        """A literal of this text, as it goes into the bound tree. ``negative``: with the sign before it."""
        if self.trace is None:
            return literal
        return self.trace.literal(node.meta["start"], literal, negative)

    def at(self, offset: int) -> Place:
        return Place(self.sql, offset)

    def of_token(self, token: Token) -> Place:
        return Place(self.sql, token.start)

    def of_node(self, node: exp.Expr) -> Place:
        """Where a tree node begins; the grammar notes it in every node."""
        return Place(self.sql, node.meta["start"])


def shown(name: str) -> str:
    """A name as a message may show it: of bounded length, without control characters."""
    cut = name if len(name) <= SHOWN_CHARACTERS_MAX else name[:SHOWN_CHARACTERS_MAX] + "…"
    return "".join(char if char.isprintable() else "\ufffd" for char in cut)


def _like(name: str, known: list[str]) -> list[str]:
    """The closest of these names, at most three."""
    if len(known) > 5_000:
        return []
    return difflib.get_close_matches(name[:200].lower(), known, n=3, cutoff=0.6)


def near(word: str, words: Iterable[str]) -> str | None:
    """A hint that names the keyword that a word may be a slip of, None where there is none."""
    close = difflib.get_close_matches(word[:50], list(words), n=1, cutoff=0.75)
    return f"did you mean {close[0]}?" if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint that names the closest candidates, or all where they are few; None where there are none."""
    known = list(candidates)
    if not known:
        return None
    if close := _like(name, known):
        return "did you mean " + " or ".join(shown(c) for c in close) + "?"
    if len(known) == 1:
        return f"there is only {shown(known[0])}"
    if len(known) <= 12:
        return "there are " + ", ".join(shown(c) for c in sorted(known))
    return None
