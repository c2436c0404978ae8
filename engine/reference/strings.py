"""Functions of strings over plain Python values, by their texts in :mod:`engine.language.functions`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence

from engine.model.types import Type
from engine.reference.values import ERROR, Outcome

CHARACTERS_MAX = 4_096


def concat_with(values: Sequence[Outcome]) -> Outcome:
    """CONCAT_WS: NULL where the separator is, which wins over errors."""
    separator, *parts = values
    if separator is None:
        return None
    if ERROR in values:
        return ERROR
    return str(separator).join(str(part) for part in parts if part is not None)


def _left(type_: Type, text: str, n: int) -> Outcome:
    return "".join(c for place, c in enumerate(text) if place < (n if n >= 0 else len(text) + n))


def _right(type_: Type, text: str, n: int) -> Outcome:
    first = len(text) - n if n >= 0 else -n
    return "".join(c for place, c in enumerate(text) if place >= first)


def _padding(text: str, n: int, fill: str) -> str | None:
    if len(text) >= n or not fill:
        return ""
    if n > CHARACTERS_MAX:
        return None
    return "".join(fill[place % len(fill)] for place in range(n - len(text)))


def _left_padded(type_: Type, text: str, n: int, fill: str = " ") -> Outcome:
    padding = _padding(text, n, fill)
    return ERROR if padding is None else _left(type_, padding + text, max(n, 0))


def _right_padded(type_: Type, text: str, n: int, fill: str = " ") -> Outcome:
    padding = _padding(text, n, fill)
    return ERROR if padding is None else _left(type_, text + padding, max(n, 0))


def _repeated(type_: Type, text: str, n: int) -> Outcome:
    if n > 1 and len(text) * n > CHARACTERS_MAX:
        return ERROR
    return "".join(text for _ in range(n)) if text else ""


def _initcap(type_: Type, text: str) -> Outcome:
    out: list[str] = []
    inside = False
    for c in text:
        turned = c.lower() if inside else c.upper()
        out.append(turned if len(turned) == 1 else c)
        inside = re.fullmatch(r"[^\W_]", c) is not None
    return "".join(out)


def _translated(type_: Type, text: str, old: str, new: str) -> Outcome:
    out = []
    for c in text:
        place = old.find(c)
        out.append(c if place < 0 else new[place : place + 1])
    return "".join(out)


def _character(type_: Type, point: int) -> Outcome:
    if not 0 < point < 0x110000 or 0xD800 <= point <= 0xDFFF:
        return ERROR
    return chr(point)


def _matches(text: str, pattern: str, flags: str) -> Iterator[re.Match[str]]:
    """As RE2 finds them: none that is empty just behind the one before."""
    end = -1
    for match in re.finditer(pattern, text, re.IGNORECASE if "i" in flags else 0):
        if match.end() > match.start() or match.start() != end:
            yield match
        end = match.end()


def _count(type_: Type, text: str, pattern: str) -> Outcome:
    return sum(1 for _ in _matches(text, pattern, ""))


def _replaced(type_: Type, text: str, pattern: str, new: str, flags: str = "") -> Outcome:
    out, place = [], 0
    for match in _matches(text, pattern, flags):
        out.append(text[place : match.start()])
        group = re.compile(r"\\(.)", re.DOTALL)
        parts = [match.group(int(n)) or "" if n.isdigit() else n for n in group.findall(new)]
        out.append("".join(a + b for a, b in zip(group.split(new)[::2], [*parts, ""], strict=True)))
        place = match.end()
        if "g" not in flags:
            break
    return "".join([*out, text[place:]])


STRINGS: dict[str, Callable[..., Outcome]] = {
    "LEFT": _left,
    "RIGHT": _right,
    "LPAD": _left_padded,
    "RPAD": _right_padded,
    "REPEAT": _repeated,
    "REVERSE": lambda type_, text: "".join(text[len(text) - 1 - place] for place in range(len(text))),
    "INITCAP": _initcap,
    "TRANSLATE": _translated,
    "CONTAINS": lambda type_, text, part: text.find(part) >= 0,
    "ENDS_WITH": lambda type_, text, suffix: text[max(len(text) - len(suffix), 0) :] == suffix,
    "OCTET_LENGTH": lambda type_, text: len(text.encode()),
    "ASCII": lambda type_, text: ord(text[0]) if text else 0,
    "CHR": _character,
    "MD5": lambda type_, text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
    "SHA1": lambda type_, text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
    "SHA256": lambda type_, text: hashlib.sha256(text.encode()).hexdigest(),
    "SHA224": lambda type_, text: hashlib.new("sha224", text.encode()).hexdigest(),
    "SHA384": lambda type_, text: hashlib.new("sha384", text.encode()).hexdigest(),
    "SHA512": lambda type_, text: hashlib.new("sha512", text.encode()).hexdigest(),
    "REGEXP_COUNT": _count,
    "REGEXP_REPLACE": _replaced,
}
