"""Parts of nested values as values of their own types, and back.

A part is what :func:`engine.model.nested.canonical.normalise` gives: JSON. A value is what columns hold and
literals are (:mod:`engine.model.types`), but DECIMAL as its unscaled integer.
"""

from __future__ import annotations

import base64
from datetime import date
from decimal import Decimal
from typing import Any

import orjson

from engine.model.nested.canonical import Misfit, dumped, instant_ms, instant_text, written
from engine.model.types import Kind, Logical, Type

_FIRST_DAY = date(1970, 1, 1).toordinal()
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def value_of(type_: Type, part: Any) -> Any:
    """The value of a part that is not null."""
    if type_.logical is not None:
        return written(type_, part)
    match type_.kind:
        case Kind.DOUBLE:
            return _SPECIAL[part] if isinstance(part, str) else float(part)
        case Kind.DECIMAL:
            return int(Decimal(part).scaleb(type_.scale))
        case Kind.DATE:
            return date.fromisoformat(part).toordinal() - _FIRST_DAY
        case Kind.TIMESTAMP:
            return instant_ms(part)
    return part


def part_of(type_: Type, value: Any) -> Any:
    """The part that a value is inside of others. Raises ValueError, Misfit for an instant: it has no text."""
    if type_.logical is Logical.BYTES:
        return base64.b64encode(bytes.fromhex(value)).decode()
    if type_.is_nested:
        return orjson.loads(value)
    match type_.kind:
        case Kind.DOUBLE:
            number = float(value) + 0.0
            if number != number:
                return "NaN"
            return number if abs(number) != float("inf") else "Infinity" if number > 0 else "-Infinity"
        case Kind.DECIMAL:
            return f"{Decimal(int(value)).scaleb(-type_.scale):f}"
        case Kind.DATE:
            return date.fromordinal(int(value) + _FIRST_DAY).isoformat()
        case Kind.TIMESTAMP:
            try:
                return instant_text(int(value))
            except OverflowError:
                raise Misfit(f"there is no TIMESTAMP {value}") from None
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.INTEGER | Kind.BIGINT:
            return int(value)
    return value


def parsed(text: str) -> Any:
    """The part that a canonical text of a nested type is."""
    return orjson.loads(text)


def text_of(part: Any) -> str:
    """The canonical text of a part of a nested type. Raises Misfit: it is too long."""
    return dumped(part)
