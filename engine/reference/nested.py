"""Canonical texts of nested values, in plain Python: what :mod:`engine.model.nested` promises."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import orjson

from engine.model.paths import parse_path
from engine.model.types import JSON, STRING, Kind, Logical, Type
from engine.reference.casts import cast
from engine.reference.values import BOUNDS, ERROR, Outcome, decimal_of, in_years

BYTES_MAX = 262_144
LEVELS_MAX = 64
_EPOCH = datetime(1970, 1, 1)


def written(part: Any) -> str:
    """JSON without white space, members in order."""
    if isinstance(part, dict):
        return "{" + ",".join(f"{_quoted(name)}:{written(part[name])}" for name in sorted(part)) + "}"
    if isinstance(part, list):
        return "[" + ",".join(map(written, part)) + "]"
    if isinstance(part, float):
        return orjson.dumps(part).decode()
    return _quoted(part) if isinstance(part, str) else json.dumps(part)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def bounded(part: Any) -> Outcome:
    """The canonical text of a nested value, an error where it is too long."""
    text = written(part)
    return text if len(text.encode()) <= BYTES_MAX else ERROR


def inside(value: Outcome, type_: Type) -> Any:
    """What a value is inside of others, as JSON has it."""
    if value is None:
        return None
    if type_.logical is Logical.BYTES:
        return base64.b64encode(bytes.fromhex(str(value))).decode()
    if type_.is_nested:
        return json.loads(str(value))
    match type_.kind:
        case Kind.DOUBLE:
            assert isinstance(value, float)
            special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
            return special.get(repr(value), value + 0.0)
        case Kind.DECIMAL:
            return f"{value:f}"
        case Kind.DATE | Kind.TIMESTAMP:
            assert isinstance(value, int)
            try:
                return _instant(value, type_.kind)
            except OverflowError:
                return ERROR
    return value


def _instant(value: int, kind: Kind) -> str:
    if kind is Kind.DATE:
        return (_EPOCH + timedelta(days=value)).date().isoformat()
    return (_EPOCH + timedelta(milliseconds=value)).isoformat(timespec="milliseconds") + "Z"


def as_json(part: Any) -> Any:
    """A part in the form of JSON: whole numbers of 64 bits as such."""
    if isinstance(part, dict):
        return {name: as_json(one) for name, one in part.items()}
    if isinstance(part, list):
        return [as_json(one) for one in part]
    if isinstance(part, int) and not isinstance(part, bool) and not -(2**63) <= part < 2**64:
        part = float(part)
    if isinstance(part, float) and part == int(part) and -(2**63) <= part < 2**64:
        return int(part)
    return part


class Unreadable(Exception):
    """A text or a part that is none of a type."""


def _refuse(name: str) -> Any:
    raise Unreadable(name)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise Unreadable("a member is given twice")
    return dict(pairs)


def read(text: str) -> Any:
    """The part that a text is: numbers as Number. Raises Unreadable."""
    try:
        text.encode()
        part = json.loads(
            text, object_pairs_hook=_pairs, parse_constant=_refuse, parse_int=Number, parse_float=Number
        )
    except (ValueError, RecursionError):
        raise Unreadable(text) from None
    if _levels(part) > LEVELS_MAX:
        raise Unreadable("too deep")
    return part


class Number(str):
    """The digits of a number."""

    __slots__ = ()


def _levels(part: Any) -> int:
    if not isinstance(part, dict | list):
        return 0
    return 1 + max(map(_levels, part.values() if isinstance(part, dict) else part), default=0)


def form(type_: Type, part: Any) -> Any:
    """A part as a type has it inside of others. Raises Unreadable."""
    if part is None:
        return None
    match type_.logical:
        case Logical.JSON:
            return as_json(_plain(part))
        case Logical.ARRAY if isinstance(part, list) and type_.element is not None:
            return [form(type_.element, one) for one in part]
        case Logical.MAP if isinstance(part, dict) and type_.element is not None:
            return {name: form(type_.element, one) for name, one in part.items()}
        case Logical.STRUCT if isinstance(part, dict):
            return {name: form(inner, _member(part, name)) for name, inner in type_.members}
        case Logical.UUID if _is_text(part) and re.fullmatch("(?i)[0-9a-f]{32}", part.replace("-", "")):
            digits = part.replace("-", "").lower()
            shown = re.sub("(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", digits)
            if part.lower() in (shown, digits):
                return shown
        case Logical.BYTES if _is_text(part):
            try:
                return base64.b64encode(base64.b64decode(part, validate=True)).decode()
            except ValueError:
                raise Unreadable(part) from None
        case None:
            return _scalar(type_, part)
    raise Unreadable(str(part))


def _is_text(part: Any) -> bool:
    return isinstance(part, str) and not isinstance(part, Number)


def _member(part: dict[str, Any], name: str) -> Any:
    if name in part:
        return part[name]
    near = [one for one in part if one.lower() == name.lower()]
    if len(near) > 1:
        raise Unreadable(name)
    return part[near[0]] if near else None


def _plain(part: Any) -> Any:
    """Numbers as int and float. Raises Unreadable for one that is too large."""
    if isinstance(part, dict):
        return {name: _plain(one) for name, one in part.items()}
    if isinstance(part, list):
        return [_plain(one) for one in part]
    if not isinstance(part, Number):
        return part
    if re.fullmatch("-?[0-9]+", part) and len(part) < 22 and -(2**63) <= int(part) < 2**64:
        return int(part)
    if math.isinf(float(part)):
        raise Unreadable(part)
    return float(part)


def _scalar(type_: Type, part: Any) -> Any:
    number = isinstance(part, Number)
    kind = type_.kind
    if kind is Kind.BOOLEAN and isinstance(part, bool):
        return part
    if type_.is_integer and number and re.fullmatch("-?[0-9]+", part):
        lowest, highest = BOUNDS[kind]
        if len(part) < 22 and lowest <= int(part) <= highest:
            return int(part)
    if kind is Kind.STRING and _is_text(part):
        return part
    if kind is Kind.DOUBLE and number and math.isfinite(float(part)):
        return float(part) + 0.0
    if kind is Kind.DOUBLE and part in ("NaN", "Infinity", "-Infinity"):
        return part
    if kind is Kind.DECIMAL and isinstance(part, str):
        try:
            unscaled = Fraction(part) * 10**type_.scale
        except ValueError:
            raise Unreadable(part) from None
        if unscaled.denominator == 1 and abs(unscaled) < 10**type_.precision:
            return f"{decimal_of(int(unscaled), type_.scale):f}"
    if kind in (Kind.DATE, Kind.TIMESTAMP) and _is_text(part) and re.fullmatch("[0-9]{4}-[0-9-]{5}.*", part):
        found = cast(part, STRING, type_)
        if found is not ERROR and (kind is Kind.TIMESTAMP or len(part) == 10):
            return inside(found, type_)
    if kind is Kind.TIMESTAMP and number and re.fullmatch("-?[0-9]{1,18}", part) and in_years(int(part)):
        return inside(int(part), type_)
    raise Unreadable(str(part))


def text_of(type_: Type, part: Any) -> Outcome:
    """The value of a logical type that a part in its form is."""
    if part is None:
        return None
    if type_.logical is Logical.UUID:
        return str(part)
    if type_.logical is Logical.BYTES:
        return base64.b64decode(part).hex()
    return bounded(part)


def value_of(type_: Type, part: Any) -> Outcome:
    """The value that a part in its form is."""
    if part is None:
        return None
    if type_.logical is not None:
        return text_of(type_, part)
    match type_.kind:
        case Kind.DOUBLE:
            return float(part)
        case Kind.DECIMAL:
            return Decimal(part)
        case Kind.DATE | Kind.TIMESTAMP:
            return cast(part, STRING, type_)
    value: Outcome = part
    return value


def cast_value(value: Outcome, source: Type, target: Type) -> Outcome:
    """CAST of any type to any other."""
    nested = source.logical is not None or target.logical is not None
    return (cast_nested if nested else cast)(value, source, target)


def cast_nested(value: Outcome, source: Type, target: Type) -> Outcome:
    """CAST where one of the types is a logical one."""
    try:
        if source.logical is Logical.BYTES and target == STRING:
            return bytes.fromhex(str(value)).decode()
        if source == STRING and target.logical is Logical.BYTES:
            return str(value).encode().hex()
        if target == STRING:
            return value
        if source == STRING and target.logical is Logical.UUID:
            return text_of(target, form(target, str(value).strip()))
        if source.is_nested or source == STRING:
            return text_of(target, form(target, read(str(value))))
        part = inside(value, source)
        return ERROR if part is ERROR else text_of(target, as_json(part))
    except (Unreadable, ValueError):
        return ERROR


# --- functions


def at(part: Any, steps: tuple[str | int, ...]) -> Any:
    """What stands there; None: nothing."""
    for step in steps:
        if isinstance(step, str):
            part = part.get(step) if isinstance(part, dict) else None
        else:
            there = isinstance(part, list) and -len(part) <= step < len(part)
            part = part[step] if there else None
    return part


def _named(part: Any, names: str) -> Any:
    """What stands there; names are plain, between commas in braces."""
    for name in filter(None, names[1:-1].split(",")):
        number = int(name) if isinstance(part, list) and name.lstrip("-").isdigit() else None
        part = at(part, (name if number is None else number,))
    return part


def _shown(part: Any) -> Outcome:
    return part if part is None or isinstance(part, str) else bounded(part)


def _json_type(part: Any) -> Outcome:
    for kind, name in ((bool, "boolean"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(part, kind):
            return name
    return None if part is None else "number"


def _at_path(write: Callable[[Any], Outcome]) -> Callable[..., Outcome]:
    return lambda type_, text, path="$": write(at(json.loads(text), parse_path(path)))


def _exists(type_: Type, text: str, path: str) -> Outcome:
    part = json.loads(text)
    for step in parse_path(path):
        known = dict(enumerate(part)) if isinstance(part, list) else part
        if not isinstance(known, dict):
            return False
        if step not in known:
            return False
        part = known[step]
    return True


def _is_json(type_: Type, text: str) -> Outcome:
    try:
        return bounded(form(JSON, read(text))) is not ERROR
    except Unreadable:
        return False


def _subscript(type_: Type, text: str, key: int | str) -> Outcome:
    if isinstance(key, str):
        return value_of(type_, json.loads(text).get(key))
    if key == 0:
        return None
    return value_of(type_, at(json.loads(text), (key - 1 if key > 0 else key,)))


def _joined(type_: Type, texts: list[Outcome]) -> Outcome:
    parts = [one for text in texts for one in json.loads(str(text))]
    return bounded(parts) if len(parts) <= 10_000 else ERROR


def _split(text: str, by: str) -> list[str]:
    return (text.split(by) if by else [text]) if text else []


def _byte_texts(type_: Type, text: str, wanted: str) -> Outcome:
    data = bytes.fromhex(text)
    try:
        return {"hex": text, "base64": base64.b64encode(data).decode()}.get(wanted.lower()) or data.decode()
    except UnicodeDecodeError:
        return ERROR


def _bytes_of(type_: Type, text: str, given: str) -> Outcome:
    try:
        if given.lower() == "hex":
            return text.lower() if re.fullmatch("(?:[0-9a-fA-F]{2})*", text) else ERROR
        if given.lower() == "base64":
            return base64.b64decode(text, validate=True).hex()
    except ValueError:
        return ERROR
    return text.encode().hex()


STRICT: dict[str, Callable[..., Outcome]] = {
    "->": lambda type_, text, key: value_of(JSON, at(json.loads(text), (key,))),
    "->>": lambda type_, text, key: _shown(at(json.loads(text), (key,))),
    "#>": lambda type_, text, names: value_of(JSON, _named(json.loads(text), names)),
    "#>>": lambda type_, text, names: _shown(_named(json.loads(text), names)),
    "JSON_EXTRACT": _at_path(lambda part: value_of(JSON, part)),
    "JSON_EXTRACT_STRING": _at_path(_shown),
    "JSON_VALUE": _at_path(lambda part: None if isinstance(part, dict | list) else _shown(part)),
    "JSON_EXISTS": _exists,
    "JSON_ARRAY_LENGTH": _at_path(lambda part: len(part) if isinstance(part, list) else None),
    "JSON_TYPE": _at_path(_json_type),
    "JSON_KEYS": _at_path(lambda part: bounded(sorted(part)) if isinstance(part, dict) else None),
    "JSON_VALID": _is_json,
    "[]": _subscript,
    ".": lambda type_, text, name: value_of(type_, json.loads(text)[name]),
    "CARDINALITY": lambda type_, text: len(json.loads(text)),
    "ARRAY_CONCAT": lambda type_, *texts: _joined(type_, list(texts)),
    "ARRAY_DISTINCT": lambda type_, text: f"[{','.join(dict.fromkeys(map(written, json.loads(text))))}]",
    "STRING_TO_ARRAY": lambda type_, text, by: written(_split(text, by)),
    "MAP_KEYS": lambda type_, text: written(sorted(json.loads(text))),
    "MAP_VALUES": lambda type_, text: written([one for _, one in sorted(json.loads(text).items())]),
    "MAP_CONTAINS_KEY": lambda type_, text, key: key in json.loads(text),
    "BYTE_LENGTH": lambda type_, text: len(text) // 2,
    "ENCODE": _byte_texts,
    "DECODE": _bytes_of,
}
"""Functions that are NULL where an argument is, of the result's type and the values."""

TYPED = frozenset(
    [
        "TO_JSON", "JSON_OBJECT", "JSON_ARRAY", "ARRAY", "STRUCT", "MAP", "[:]", "ARRAY_CONTAINS",
        "MAP_FROM_ENTRIES", "ANY_EQUAL", "ARRAY_POSITION", "ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_TO_STRING",
    ]
)  # fmt: skip
"""Functions that look at the types of their arguments."""


def call_typed(name: str, values: list[Outcome], types: list[Type], type_: Type) -> Outcome:
    """One of TYPED."""
    if ERROR in values and not (name in _STRICT_TYPED and None in values):
        return ERROR
    parts = [inside(value, one) for value, one in zip(values, types, strict=True)]
    if ERROR in parts:
        return ERROR
    match name:
        case "JSON_ARRAY":
            return bounded([as_json(part) for part in parts])
        case "ARRAY":
            return bounded(parts)
        case "JSON_OBJECT" | "MAP" | "STRUCT":
            names = values[::2]
            if None in names or len(set(names)) < len(names):
                return ERROR
            made = [as_json(part) for part in parts[1::2]] if name == "JSON_OBJECT" else parts[1::2]
            return bounded(dict(zip(names, made, strict=True)))
        case "[:]":
            return None if values[0] is None else _cut(parts[0], values[1], values[2])
        case "ARRAY_APPEND":
            return None if values[0] is None else bounded([*parts[0], parts[1]])
        case "ARRAY_PREPEND":
            return None if values[1] is None else bounded([parts[0], *parts[1]])
    if None in values:
        return None
    if name == "MAP_FROM_ENTRIES":
        return _of_entries(parts[0], types[0])
    if name == "TO_JSON":
        return bounded(as_json(parts[0]))
    if name == "ARRAY_TO_STRING":
        assert types[0].element is not None
        return _text_of_array(parts, types[0].element)
    return _search(name, parts)


def _of_entries(entries: list[Any], type_: Type) -> Outcome:
    assert type_.element is not None
    (key, _), (value, _) = type_.element.members
    found = {}
    for entry in entries:
        if entry is None or entry[key] is None:
            return ERROR
        found[entry[key]] = entry[value]
    return bounded(found)


_STRICT_TYPED = (
    "MAP_FROM_ENTRIES",
    "TO_JSON",
    "ARRAY_CONTAINS",
    "ANY_EQUAL",
    "ARRAY_POSITION",
    "ARRAY_TO_STRING",
)


def _search(name: str, parts: list[Any]) -> Outcome:
    """Where an element equals a value."""
    places = [place for place, one in enumerate(parts[0], start=1) if written(one) == written(parts[1])]
    if name == "ARRAY_POSITION":
        return places[0] if places else None
    return True if places else None if name == "ANY_EQUAL" and None in parts[0] else False


def _cut(parts: list[Any], first: Outcome, last: Outcome) -> Outcome:
    """Elements by their places from 1."""
    low = 1 if first is None else first
    high = len(parts) if last is None else last
    assert isinstance(low, int)
    assert isinstance(high, int)
    low = len(parts) + 1 + low if low < 0 else low
    high = len(parts) + 1 + high if high < 0 else high
    return bounded([part for place, part in enumerate(parts, start=1) if low <= place <= high])


def _text_of_array(parts: list[Any], element: Type) -> Outcome:
    found: list[str] = []
    for part in parts[0]:
        if part is None:
            found += parts[2:]
        elif element == STRING:
            found.append(part)
        else:
            value = value_of(element, part)
            text = value if element.logical is not None else cast(value, element, STRING)
            found.append(str(text))
    return str(parts[1]).join(found)
