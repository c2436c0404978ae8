"""Texts cut at their literals, without parsing: what two texts that differ in constants have in common.

    SELECT a FROM s WHERE b > 10 AND c = 'x'    ->    pieces  'SELECT a FROM s WHERE b > ', ' AND c = ', ''
                                                      literals  10, 'x'

A piece is taken letter by letter, so everything that is not surely one whole literal token belongs to the
shape: numbers glued to something else (``5.``, ``1a``, ``t.5``), digits in names and quoted names. A shape is
*sure* unless its quotes may pair otherwise (comments, prefixes as in ``N'x'``, quotes that do not close) or
it has an ``@`` or a sign behind an exponent, where the tokenizer cuts numbers in another way. Texts of one
sure shape have the same tokens, but for the text of tokens that are literals.

Cost: one regular expression, some microseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.language.literals import number_literal
from engine.language.places import Place
from engine.model.expressions import Literal
from engine.model.types import INTEGER, STRING
from tureen.errors import TypeMismatch

LITERALS_MAX = 256
"""Longer texts are mostly lists: cutting them wins little, and comparing all with all costs."""

# What may stand directly before and after a literal token. Beside anything else it may be part of another
# one, as it may be behind the sign of an exponent; and a sign behind an exponent may be part of the token.
_BEFORE = r" \t\n\r(\[,=<>+*/%|-"
_AFTER = r" \t\n\r)\],=<>+*/%|:;-"
# A match begins with one of a few characters, which the engine of regular expressions can search for; what
# stands before it is looked at afterwards. Groups: that character, the rest of a string, of a number.
_STRING = rf"(?<=')(?<![^{_BEFORE}].)((?:[^'\x00]++|'')*+)'(?![^{_AFTER}])"
_NUMBER = (
    rf"(?<=[0-9])(?<![^{_BEFORE}].)(?<![eE][+-].)"
    rf"([0-9]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+(?![+-]))?)(?![^{_AFTER}])"
)
_CUT = re.compile(f"(['0-9])(?:{_STRING}|{_NUMBER})", re.DOTALL)
_CUT_NAMES = re.compile(rf"""([\"'0-9])(?:{_STRING}|{_NUMBER}|(?<=")([^"]*+"))""", re.DOTALL)
_UNSURE = re.compile(r"['@]|--|/\*|[0-9][eE][+-]?[0-9]+[+-]")

_LIST = re.compile(r"\((?:\?, ?)+\?\)")

Shape = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """shape: the pieces, then the literals' types. texts: literals as written, strings without quotes."""

    sql: str
    shape: Shape
    literals: list[Literal]
    texts: list[str]

    def places(self) -> dict[int, int]:
        """Offset of each literal in the text -> its number."""
        found: dict[int, int] = {}
        offset = 0
        for number, text in enumerate(self.texts):
            offset += len(self.shape[number])
            found[offset] = number
            offset += len(text) + (2 if self.literals[number].type == STRING else 0)
        return found

    def with_texts(self, texts: list[str]) -> str:
        """The text with other literals, written as these."""
        parts = []
        for number, text in enumerate(texts):
            quote = "'" if self.literals[number].type == STRING else ""
            parts.append(f"{self.shape[number]}{quote}{text}{quote}")
        parts.append(self.shape[len(texts)])
        return "".join(parts)


def is_sure(cut: Cut) -> bool:
    """Whether every quote of the text was paired as the tokenizer pairs them; once for each shape."""
    pieces = cut.shape[: len(cut.texts) + 1]
    for piece in pieces:
        plain = re.sub(r'"[^"]*+"', '""', piece)
        if _UNSURE.search(plain) or plain.count('"') % 2:
            return False
    return True


def cut(sql: str) -> Cut | None:
    """The text cut at its literals; None where it has none, too many, or one that no column could hold."""
    if '"' in sql:
        pieces, begins, strings, numbers = _with_names(sql)
    else:
        parts = _CUT.split(sql)
        pieces, begins, strings, numbers = parts[0::4], parts[1::4], parts[2::4], parts[3::4]
    if not 0 < len(strings) <= LITERALS_MAX:
        return None
    literals: list[Literal] = []
    texts: list[str] = []
    for begin, string, rest in zip(begins, strings, numbers, strict=True):
        if string is not None:
            texts.append(string)
            literals.append(Literal(string.replace("''", "'"), STRING))
            pieces.append("s")
            continue
        number = begin + rest
        texts.append(number)
        if len(number) < 10 and number.isdecimal():
            literals.append(Literal(int(number), INTEGER))
            pieces.append("i")
            continue
        try:
            literal = number_literal(number, False, Place(sql, 0))
        except TypeMismatch:
            return None
        literals.append(literal)
        pieces.append(str(literal.type))
    return Cut(sql, tuple(pieces), literals, texts)


def without_constants(sql: str) -> str:
    """The text with ``?`` in the place of each literal, for people to group texts by: lists of literals are
    one whatever their length, and white space is as good as any other.

    >>> without_constants("SELECT a FROM s  WHERE b IN (1, 2, 3) AND c = 'x'")
    'SELECT a FROM s WHERE b IN (?, ...) AND c = ?'
    """
    if '"' in sql:
        pieces = _with_names(sql)[0]
    else:
        pieces = _CUT.split(sql)[0::4]
    return _LIST.sub("(?, ...)", " ".join("?".join(pieces).split()))


def _with_names(sql: str) -> tuple[list[str], list[str], list[str | None], list[str]]:
    """As the plain cut, where quoted names stand in the text: they belong to the pieces."""
    pieces: list[str] = []
    begins: list[str] = []
    strings: list[str | None] = []
    numbers: list[str] = []
    parts = _CUT_NAMES.split(sql)
    held = ""
    for place in range(0, len(parts) - 1, 5):
        piece, begin, string, number, name = parts[place : place + 5]
        if name is not None:
            held += piece + begin + name
            continue
        pieces.append(held + piece)
        held = ""
        begins.append(begin)
        strings.append(string)
        numbers.append(number)
    pieces.append(held + parts[-1])
    return pieces, begins, strings, numbers
