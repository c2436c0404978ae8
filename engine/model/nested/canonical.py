"""The canonical text of a value of a logical type, and what it is made from.

Two values of one type are equal where their canonical texts are. That of nested values is JSON without white
space, members by name in the order of code points. What a value is, by type::

    JSON              any JSON. A number that is whole and fits 64 bits is an integer (1.0 and 1e2 are 1 and
                      100), others are the nearest DOUBLE
    ARRAY<T>          an array of T
    STRUCT<a T, ...>  an object; members are found by their names, else by a name that differs in letter case
                      alone; others are passed over, missing ones are NULL
    MAP<STRING, T>    an object whose members are T
    BYTES             base64 in a string
    UUID              32 hexadecimal digits in a string, with or without hyphens
    BOOLEAN, ...      inside of others: as members of records are read (:mod:`topics.codec`)

null is NULL. Inside of others values stand as answers in JSON have them: DOUBLE as a number with a fraction
or an exponent, or "NaN", "Infinity"; DECIMAL, DATE, TIMESTAMP, UUID and BYTES (base64) in strings. An object
that has a member twice is refused, as are halves of surrogate pairs, more than LEVELS_MAX levels and more
than BYTES_MAX bytes.

Cost: some 2 us a text, and 0.5 us for each value of a typed one.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import orjson

from engine.model.paths import path_text
from engine.model.types import JSON, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Kind, Logical, Type

LEVELS_MAX = 64
BYTES_MAX = 256 * 1024
SHOWN_CHARACTERS = 40

_INTEGERS = {Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NUMBERS_TO_CHANGE = re.compile(r"\.0|[0-9]e")
_MEMBER = re.compile(r'"(?:[^"\\]|\\.)*"\s*:')
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?)[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{12}")
_EPOCH = datetime(1970, 1, 1)
_MS = timedelta(milliseconds=1)

Steps = tuple[str | int, ...]


class Misfit(ValueError):
    """A text or a value that is none of a type; the message says why."""


class _Number(str):
    """The digits of a JSON number that is not whole."""

    __slots__ = ()


def canonical(type_: Type, text: str) -> str | None:
    """The canonical text of a logical type's value that is written as JSON; None for null. Raises Misfit."""
    return canonical_of(type_, load(text, exact=is_exact(type_)))


def canonical_of(type_: Type, value: Any) -> str | None:
    """The canonical text of a value as :func:`load` gives it, of whose objects no member was given twice."""
    if type_.logical is Logical.JSON and value is not None:
        found = dumped(value)
        return dumped(normalise(JSON, value)) if _NUMBERS_TO_CHANGE.search(found) else found
    normal = normalise(type_, value)
    return None if normal is None else written(type_, normal)


def written(type_: Type, normal: Any) -> str:
    """The canonical text of a value that is none but in form: as :func:`normalise` gives it."""
    if type_.logical is Logical.UUID:
        return str(normal)
    if type_.logical is Logical.BYTES:
        return base64.b64decode(normal).hex()
    return dumped(normal)


def dumped(normal: Any) -> str:
    """JSON of a value in its form, canonical. Raises Misfit: it is too long."""
    try:
        text = orjson.dumps(normal, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise Misfit(str(error)) from None
    if len(text) > BYTES_MAX:
        raise Misfit(f"{len(text):,} bytes are more than the {BYTES_MAX:,} that a nested value may have")
    return text.decode()


def load(text: str, *, exact: bool = False) -> Any:
    """The value of a JSON text. exact: numbers that are not whole keep their digits. Raises Misfit."""
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise Misfit(_not_json(text, error)) from None
    if text.count("{") + text.count("[") > LEVELS_MAX and _levels(value) > LEVELS_MAX:
        raise Misfit(f"nested deeper than {LEVELS_MAX} levels")
    if "{" in text:
        _refuse_twice(text, value)
    return json.loads(text, parse_float=_Number) if exact else value


def _not_json(text: str, error: ValueError) -> str:
    if "surrogate" in str(error):
        return "half a surrogate pair is not a character"
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except Misfit as refused:
        return str(refused)
    except (ValueError, RecursionError):
        return f"not JSON: {str(error).rpartition(': line')[0] or error}"
    del value  # a number that is no finite DOUBLE, or half a surrogate pair
    return "a number is out of the range of DOUBLE" if "infinity" in str(error) else f"not JSON: {error}"


def _refuse_constant(name: str) -> Any:
    raise Misfit(f"{name} is not JSON")


def _levels(value: Any) -> int:
    levels, inner = 0, [value]
    while inner := [one for one in inner if isinstance(one, dict | list)]:
        levels += 1
        inner = [part for one in inner for part in (one.values() if isinstance(one, dict) else one)]
    return levels


def _refuse_twice(text: str, value: Any) -> None:
    """Raise Misfit for an object with a member that is given twice: the text has more than its value."""
    if "\\" not in text and text.count(":") == orjson.dumps(value).count(b":"):
        return
    if "\\" in text and len(_MEMBER.findall(text)) == len(_MEMBER.findall(orjson.dumps(value).decode())):
        return
    json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Misfit(f"{short(twice)} is given twice")
    return found


@lru_cache(maxsize=1_024)
def is_exact(type_: Type) -> bool:
    """Whether values of a type have to be read with all digits of their numbers."""
    inner = [type_.element] if type_.element is not None else [one for _, one in type_.members]
    return type_.kind is Kind.DECIMAL or any(map(is_exact, inner))


# --- the form of a value


def normalise(type_: Type, value: Any, at: Steps = ()) -> Any:
    """A value that JSON gave, as the type has it in JSON; None for null. Raises Misfit."""
    if value is None:
        return None
    normal = _NORMAL[type_.kind if type_.logical is None else type_.logical]
    return normal(type_, value, at)


def _json(type_: Type, value: Any, at: Steps) -> Any:
    if isinstance(value, _Number):
        value = float(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Misfit("a number is out of the range of DOUBLE")
        return int(value) if value.is_integer() and -(2.0**63) <= value < 2.0**64 else value
    if isinstance(value, dict):
        return {name: _json(JSON, one, at) for name, one in value.items()}
    if isinstance(value, list):
        return [_json(JSON, one, at) for one in value]
    return value


def _array(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, list):
        raise _misfit(type_, value, at)
    assert type_.element is not None
    return [normalise(type_.element, one, (*at, place)) for place, one in enumerate(value)]


def _map(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, dict):
        raise _misfit(type_, value, at)
    assert type_.element is not None
    return {name: normalise(type_.element, one, (*at, name)) for name, one in value.items()}


def _struct(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, dict):
        raise _misfit(type_, value, at)
    near: dict[str, list[str]] = {}
    if any(name not in value for name, _ in type_.members):
        for name in value:
            near.setdefault(name.lower(), []).append(name)
    found = {}
    for name, inner in type_.members:
        spelt = [name] if name in value else near.get(name.lower(), [])
        if len(spelt) > 1:
            raise Misfit(f"{' and '.join(sorted(spelt))} differ in letter case alone{_where(at)}")
        found[name] = normalise(inner, value[spelt[0]], (*at, spelt[0])) if spelt else None
    return found


def _boolean(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, bool):
        raise _misfit(type_, value, at)
    return value


def _integer(type_: Type, value: Any, at: Steps) -> Any:
    if type(value) is not int:
        raise _misfit(type_, value, at)
    bound = _INTEGERS[type_.kind]
    if not -bound <= value < bound:
        raise Misfit(f"{short(str(value))} is out of the range of {type_}{_where(at)}")
    return value


def _double(type_: Type, value: Any, at: Steps) -> Any:
    if isinstance(value, _Number) or type(value) in (int, float):
        try:
            number = float(value) + 0.0  # of the two zeros one
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise Misfit(f"{short(str(value))} is out of the range of DOUBLE{_where(at)}")
        return number
    if isinstance(value, str) and value in SPECIAL:
        return value
    raise _misfit(type_, value, at)


def _decimal(type_: Type, value: Any, at: Steps) -> Any:
    text = value if isinstance(value, str) else str(value)
    if isinstance(value, bool | dict | list) or not _DECIMAL.fullmatch(text):
        raise _misfit(type_, value, at)
    try:
        given = Decimal(text)
        scaled = given.scaleb(type_.scale)
        fits = scaled == scaled.to_integral_value() and abs(scaled) < 10**type_.precision
    except InvalidOperation:
        fits = False
    if not fits:
        raise Misfit(f"{short(text)} does not fit {type_}{_where(at)}")
    return f"{Decimal(int(scaled)).scaleb(-type_.scale):f}"


def _string(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, str) or isinstance(value, _Number):
        raise _misfit(type_, value, at)
    return value


def _date(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise _misfit(type_, value, at)
    try:
        return datetime.fromisoformat(value).date().isoformat()
    except ValueError:
        raise Misfit(f"there is no DATE {value}{_where(at)}") from None


def _timestamp(type_: Type, value: Any, at: Steps) -> Any:
    if type(value) is int:
        if not TIMESTAMP_MS_MIN <= value <= TIMESTAMP_MS_MAX:
            raise Misfit(f"{short(str(value))} is out of the range of TIMESTAMP{_where(at)}")
        return instant_text(value)
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise _misfit(type_, value, at)
    day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(day).replace(hour=int(hour or 0), minute=int(minute or 0))
        moment = moment.replace(second=int(second or 0))
        ms = (moment - _EPOCH) // _MS + int((fraction or "0")[:3].ljust(3, "0"))
        if zone and zone != "Z":
            digits = zone[1:].replace(":", "").ljust(4, "0")
            if int(digits[:2]) > 23 or int(digits[2:]) > 59:
                raise ValueError
            ms -= (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
        if not TIMESTAMP_MS_MIN <= ms <= TIMESTAMP_MS_MAX:
            raise ValueError
    except ValueError:
        raise Misfit(f"there is no TIMESTAMP {short(str(value))}{_where(at)}") from None
    return instant_text(ms)


def instant_text(ms: int) -> str:
    """An instant, ms since 1970, in the years 1 to 9999: ``2013-01-31T09:15:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def instant_ms(text: str) -> int:
    """The inverse of :func:`instant_text`."""
    return (datetime.fromisoformat(text[:-1]) - _EPOCH) // _MS


def _uuid(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise _misfit(type_, value, at)
    digits = value.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _bytes(type_: Type, value: Any, at: Steps) -> Any:
    if not isinstance(value, str):
        raise _misfit(type_, value, at)
    try:
        return base64.b64encode(base64.b64decode(value, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise Misfit(f"expected BYTES in base64, got {described(value)}{_where(at)}") from None


_NORMAL: dict[Kind | Logical, Callable[[Type, Any, Steps], Any]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Logical.JSON: _json,
    Logical.ARRAY: _array,
    Logical.STRUCT: _struct,
    Logical.MAP: _map,
    Logical.BYTES: _bytes,
    Logical.UUID: _uuid,
}


def _misfit(type_: Type, value: Any, at: Steps) -> Misfit:
    return Misfit(f"expected {type_}, got {described(value)}{_where(at)}")


def _where(at: Steps) -> str:
    return f" at {path_text(at)}" if at else ""


def described(value: Any) -> str:
    """A value of JSON in words."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Number) or not isinstance(value, str):
        return f"number {short(str(value))}"
    return "string " + short(json.dumps(value))


def short(text: str) -> str:
    """A text to be shown, cut where it is long."""
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
