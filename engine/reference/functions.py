"""The scalar functions of :mod:`engine.language.functions` over plain Python values, by their texts there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from engine.model.types import Kind, Type
from engine.reference import nested
from engine.reference.casts import half_away
from engine.reference.mathematics import MATHEMATICS
from engine.reference.samples import seeded_key
from engine.reference.strings import STRINGS, concat_with
from engine.reference.texts import (
    count_char,
    date_format,
    regexp_extract,
    regexp_like,
    similar_to,
    split_index,
    split_part,
    to_char,
)
from engine.reference.times import TIMES
from engine.reference.values import ERROR, Outcome, fit, order


def call(name: str, values: list[Outcome], types: list[Type], type_: Type) -> Outcome:
    """The value of a function. Raises NotImplementedError for one that is not known here."""
    if name == "COALESCE":
        return next((value for value in values if value is not None), None)
    if name == "NULLIF":
        return _nullif(values[0], values[1], types[0])
    if name == "SINGLE":
        return _single(values[0], values[1])
    if name in ("GREATEST", "LEAST", "CONCAT"):
        if ERROR in values:
            return ERROR
        present = [value for value in values if value is not None]
        if name == "CONCAT":
            return "".join(str(value) for value in present)
        return _extreme(name, present, type_)
    if name == "CONCAT_WS":
        return concat_with(values)
    if name in nested.TYPED:
        return nested.call_typed(name, values, types, type_)
    function = _STRICT.get(name)
    if function is None:
        raise NotImplementedError(f"the function {name}")
    if any(value is None for value in values):
        return None
    if ERROR in values:
        return ERROR
    return function(type_, *values)


def _single(value: Outcome, count: Outcome) -> Outcome:
    if isinstance(count, int) and count > 1:
        return ERROR
    return ERROR if value is not None and count is ERROR else value


def _nullif(value: Outcome, other: Outcome, type_: Type) -> Outcome:
    if value is None or other is None:
        return value
    if value is ERROR or other is ERROR:
        return ERROR
    return None if order(value, type_, other, type_) == 0 else value


def _extreme(name: str, present: Sequence[Outcome], type_: Type) -> Outcome:
    best: Outcome = None
    for value in present:
        if best is None or order(value, type_, best, type_) == (1 if name == "GREATEST" else -1):
            best = value
    return best


# --- numbers ------------------------------------------------------------------------------------------


def _abs(type_: Type, x: Any) -> Outcome:
    return fit(Fraction(abs(x)) if isinstance(x, Decimal) else abs(x), type_)


def _sign(type_: Type, x: Any) -> Outcome:
    if isinstance(x, float) and math.isnan(x):
        return x
    sign = int(x > 0) - int(x < 0)
    return float(sign) if type_.kind is Kind.DOUBLE else sign


def _to_places(whole: Callable[[Fraction], int]) -> Callable[..., Outcome]:
    """ROUND and TRUNC. whole: a whole number for an exact one."""

    def of(type_: Type, x: Any, places: int = 0) -> Outcome:
        if isinstance(x, float):
            return _double_to_places(x, places, whole)
        if places >= 0 and isinstance(x, int):
            return x
        unit = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
        if places < -40:
            return fit(0, type_)
        exact = whole(Fraction(x) / unit) * unit
        return fit(int(exact) if isinstance(x, int) else exact, type_)

    return of


def _double_to_places(x: float, places: int, whole: Callable[[Fraction], int]) -> float:
    """x * 10^places to a whole number and back, all in doubles; x where that is not finite."""
    if not math.isfinite(x):
        return x
    try:
        factor = 10.0 ** abs(places)
    except OverflowError:
        return x if places > 0 else math.copysign(0.0, x)
    scaled = x * factor if places >= 0 else x / factor
    if not math.isfinite(scaled):
        return x
    found = math.copysign(float(whole(Fraction(scaled))), x)
    return found / factor if places >= 0 else found * factor


def _floor(type_: Type, x: Any) -> Outcome:
    if isinstance(x, float):
        return x if not math.isfinite(x) or x == 0 else math.copysign(float(math.floor(x)), x)
    return fit(math.floor(x), type_)


def _ceil(type_: Type, x: Any) -> Outcome:
    if isinstance(x, float):
        return x if not math.isfinite(x) or x == 0 else math.copysign(float(math.ceil(x)), x)
    return fit(math.ceil(x), type_)


def _sqrt(type_: Type, x: float) -> Outcome:
    return ERROR if x < 0 else math.sqrt(x)


def _ln(type_: Type, x: float) -> Outcome:
    return ERROR if x <= 0 else math.log(x)


def _exp(type_: Type, x: float) -> Outcome:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _power(type_: Type, x: float, y: float) -> Outcome:
    if (x == 0 and y < 0) or (x < 0 and math.isfinite(x) and math.isfinite(y) and y != math.floor(y)):
        return ERROR
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf


# --- strings ------------------------------------------------------------------------------------------


def _simple(character: str, turned: str) -> str:
    """Case goes character by character, by Unicode's simple mapping, which never makes several of one."""
    if len(turned) == 1:
        return turned
    return {"ß": "ẞ", "İ": "i"}.get(character, character)


def _substring(type_: Type, text: str, start: int, length: int | None = None) -> Outcome:
    """Characters are counted from 1; places before the first are part of the length."""
    if length is None:
        return "".join(c for place, c in enumerate(text, 1) if place >= start)
    if length < 0:
        return ERROR
    return "".join(c for place, c in enumerate(text, 1) if start <= place < start + length)


def _replace(type_: Type, text: str, old: str, new: str) -> Outcome:
    return text.replace(old, new) if old else text


_STRICT: dict[str, Callable[..., Outcome]] = {
    "seeded sample key": lambda type_, key, seed: seeded_key(seed, key),
    "ABS": _abs,
    "SIGN": _sign,
    "ROUND": _to_places(half_away),
    "FLOOR": _floor,
    "CEIL": _ceil,
    "TRUNC": _to_places(math.trunc),
    "SQRT": _sqrt,
    "LN": _ln,
    "EXP": _exp,
    "POWER": _power,
    "LOWER": lambda type_, text: "".join(_simple(c, c.lower()) for c in text),
    "UPPER": lambda type_, text: "".join(_simple(c, c.upper()) for c in text),
    "LENGTH": lambda type_, text: len(text),
    "TRIM": lambda type_, text, characters=" ": text.strip(characters) if characters else text,
    "LTRIM": lambda type_, text, characters=" ": text.lstrip(characters) if characters else text,
    "RTRIM": lambda type_, text, characters=" ": text.rstrip(characters) if characters else text,
    "SUBSTRING": _substring,
    "REPLACE": _replace,
    "||": lambda type_, left, right: left + right,
    "STARTS_WITH": lambda type_, text, prefix: text[: len(prefix)] == prefix,
    "POSITION": lambda type_, part, text: text.find(part) + 1,
    "COUNT_CHAR": count_char,
    "SPLIT_PART": split_part,
    "SPLIT_INDEX": split_index,
    "REGEXP_LIKE": regexp_like,
    "SIMILAR_TO": similar_to,
    "REGEXP_EXTRACT": regexp_extract,
    "DATE_FORMAT": date_format,
    "TO_CHAR": to_char,
    **MATHEMATICS,
    **STRINGS,
    **TIMES,
    **nested.STRICT,
}
