"""Texts with parameters: a placeholder means the constant that would be written in its place.

    SELECT a FROM s WHERE b > ? AND c = ?        with [5, "it's"]
    SELECT a FROM s WHERE b > $1 AND d < $1      with [5]
    SELECT a FROM s WHERE b > :low AND c = :name with {"low": 5, "name": "it's"}

A text has placeholders of one form. Values are JSON's: a number is written as JSON writes it (``0.1`` is a
DECIMAL as in any text, ``1e300`` a DOUBLE), a string in quotes, so that it can be compared with strings, and
with dates and timestamps too (``"2024-01-31 12:00:00"``, in UTC); true, false and null are TRUE, FALSE and
NULL. A value is one constant, nothing else can come of it: strings are quoted, and blanks stand around all.

So everything that is true of a text is true of a text with parameters: types, refusals, templates. A refusal
names the place in the text with the placeholders.

Cost: a few microseconds; where the placeholders are is kept for the texts used last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from engine.language.places import Place
from engine.model.step import Parameter, Parameters, Registration
from tureen.errors import ParametersRefused, TureenError

TEXTS_MAX = 1_024
_HINT = 'write ? and ["value", ...], $1 and the same, or :name and {"name": "value"}'

_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "[^"]*" | --[^\n\r]* | (?P<comment>/\*) | [^\W\d][\w$]* | ::
    | (?P<next>\?) | \$(?P<number>[0-9]{1,9})(?!\w) | :(?P<name>[^\W\d]\w*)""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class _Form:
    """pieces: the text around the placeholders. keys: place in the list, or name, of each. begins, ends:
    their offsets in the text.
    """

    pieces: tuple[str, ...]
    keys: tuple[int | str, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]


def written(sql: str, parameters: Parameters | None) -> str:
    """The text with its parameters written in; the text itself where there are none (None).

    Raises ParametersRefused: a value too many or too few, or one that is no constant.
    """
    return sql if parameters is None else "".join(_parts(sql, parameters))


def text_of(registration: Registration) -> str:
    """What is registered, as one text. Raises ParametersRefused."""
    return written(registration.sql, registration.parameters)


def refused_at(refusal: TureenError, sql: str, parameters: Parameters | None) -> TureenError:
    """The refusal of a written text, with its place in the text that has the placeholders."""
    if parameters is None or refusal.line is None or refusal.column is None:
        return refusal
    form, parts = _form(sql), _parts(sql, parameters)
    lines = "".join(parts).split("\n")
    offset = sum(len(line) + 1 for line in lines[: refusal.line - 1]) + refusal.column - 1
    origin = begin = 0
    for number, part in enumerate(parts):
        inside = offset < begin + len(part) or number + 1 == len(parts)
        if inside:
            origin = form.begins[number // 2] if number % 2 else origin + offset - begin
            break
        begin += len(part)
        origin = form.ends[number // 2] if number % 2 else form.begins[number // 2]
    place = Place(sql, min(origin, len(sql)))
    refusal.line, refusal.column = place.line, place.column
    return refusal


def _parts(sql: str, parameters: Parameters) -> list[str]:
    """Pieces and written values by turns."""
    form = _form(sql)
    _check_all_used(form, sql, parameters)
    parts = [form.pieces[0]]
    for key, begin, piece in zip(form.keys, form.begins, form.pieces[1:], strict=True):
        parts += (_constant(_value(parameters, key, begin, sql), key, begin, sql), piece)
    return parts


def _value(parameters: Parameters, key: int | str, begin: int, sql: str) -> Parameter:
    if isinstance(parameters, Mapping):
        if isinstance(key, str) and key in parameters:
            return parameters[key]
        message = f"there is no value for :{key}" if isinstance(key, str) else "values by name need :name"
        raise _refused(sql, begin, message)
    if isinstance(key, int) and key < len(parameters):
        return parameters[key]
    if isinstance(key, str):
        raise _refused(sql, begin, f"a list has no value for :{key}")
    raise _refused(sql, begin, f"there are {len(parameters)} values, this is placeholder {key + 1}")


def _check_all_used(form: _Form, sql: str, parameters: Parameters) -> None:
    last = form.begins[-1] if form.begins else 0
    if isinstance(parameters, Mapping):
        left = [name for name in parameters if name not in form.keys]
        if left:
            raise _refused(sql, last, f"there is no placeholder :{left[0]}")
        return
    placeholders = len(set(form.keys))
    if len(parameters) > placeholders and not isinstance(next(iter(form.keys), 0), str):
        raise _refused(sql, last, f"there are {len(parameters)} values, but {placeholders} placeholders")


def _constant(value: object, key: int | str, begin: int, sql: str) -> str:
    """A value as it is written in a text; it may be anything that JSON can carry."""
    if isinstance(value, str):
        if "\x00" in value:
            raise _refused(sql, begin, f"value {_called(key)} contains the character U+0000")
        return " '" + value.replace("'", "''") + "' "
    if value is None:
        return " NULL "
    if isinstance(value, bool):
        return " TRUE " if value else " FALSE "
    if isinstance(value, int):
        return f" {value} " if value >= 0 else f" ({value}) "
    if not isinstance(value, float):
        what = "a list or an object"
    elif math.isfinite(value):
        return f" {value!r} " if math.copysign(1.0, value) > 0 else f" ({value!r}) "
    else:
        what = repr(value)
    raise _refused(sql, begin, f"value {_called(key)} is no constant, but {what}")


def _called(key: int | str) -> str:
    return f":{key}" if isinstance(key, str) else str(key + 1)


def _refused(sql: str, offset: int, message: str) -> ParametersRefused:
    place = Place(sql, offset)
    return ParametersRefused(message, hint=_HINT, line=place.line, column=place.column)


@lru_cache(maxsize=TEXTS_MAX)
def _form(sql: str) -> _Form:
    """Where the placeholders are: outside of strings, quoted names and comments. O(text)."""
    pieces: list[str] = []
    keys: list[int | str] = []
    begins: list[int] = []
    ends: list[int] = []
    form, place, after = "", 0, 0
    while found := _TOKEN.search(sql, place):
        place = found.end()
        kind = found.lastgroup
        if kind == "comment":
            place = _after_comment(sql, place)
        elif kind is not None:
            if form and form != kind:
                raise _refused(sql, found.start(), "placeholders of two forms in one text")
            form = kind
            key = len(keys) if kind == "next" else found["name"] or int(found["number"] or 0) - 1
            if key == -1:
                raise _refused(sql, found.start(), "placeholders count from $1")
            pieces.append(sql[after : found.start()])
            keys.append(key)
            begins.append(found.start())
            ends.append(place)
            after = place
    pieces.append(sql[after:])
    return _Form(tuple(pieces), tuple(keys), tuple(begins), tuple(ends))


def _after_comment(sql: str, place: int) -> int:
    """The end of a comment, which may hold others."""
    depth = 1
    while depth and (found := _COMMENT.search(sql, place)):
        depth += 1 if found[0] == "/*" else -1
        place = found.end()
    return place if not depth else len(sql)
