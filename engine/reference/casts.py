"""CAST over plain Python values: which text, number or instant stands for which.

DOUBLE to a whole number rounds halves to even. To DECIMAL halves go away from zero; a DOUBLE is first
multiplied by the power of ten, in doubles, as its reader expects of 0.145.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Literal as OneOf

from engine.model.types import Kind, Type
from engine.reference.values import BOUNDS, DAY_MS, ERROR, Failure, Outcome, decimal_of, in_years

EPOCH = datetime(1970, 1, 1)
SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
TRUTHS = {
    **dict.fromkeys(["true", "t", "yes", "y", "on", "1"], True),
    **dict.fromkeys(["false", "f", "no", "n", "off", "0"], False),
}


def cast(value: Outcome, source: Type, target: Type) -> Outcome:
    """The value as one of ``target``, an error where it does not convert."""
    if source == target:
        return value
    if source.kind is Kind.STRING:
        assert isinstance(value, str)
        return _read(value, target)
    if target.kind is Kind.STRING:
        return _write(value, source)
    if source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
        assert isinstance(value, int)
        return value * DAY_MS
    if source.kind is Kind.TIMESTAMP and target.kind is Kind.DATE:
        assert isinstance(value, int)
        return value // DAY_MS
    if not isinstance(value, int | float | Decimal):
        raise NotImplementedError(f"{source} -> {target}")
    if target.kind is Kind.INTERVAL:
        return value
    if target.kind is Kind.TIME:
        return value % DAY_MS if source.kind is Kind.TIMESTAMP else value if 0 <= value < DAY_MS else ERROR
    return _number(value, target)


def _number(value: int | float | Decimal, target: Type) -> Outcome:
    """From BOOLEAN or a number to BOOLEAN or a number."""
    if target.kind is Kind.BOOLEAN:
        return value != 0
    if target.kind is Kind.DOUBLE:
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ERROR
    if target.kind is Kind.DECIMAL:
        if isinstance(value, float):
            scaled = value * 10.0**target.scale
            if not math.isfinite(scaled):
                return ERROR
            return _decimal(Fraction(scaled), target)
        return _decimal(Fraction(value) * 10**target.scale, target)
    if target.is_integer:
        whole = round(value) if isinstance(value, float) else half_away(Fraction(value))
        lowest, highest = BOUNDS[target.kind]
        return whole if lowest <= whole <= highest else ERROR
    raise NotImplementedError(f"a number -> {target}")


def _decimal(unscaled: Fraction, target: Type) -> Outcome:
    whole = half_away(unscaled)
    return decimal_of(whole, target.scale) if abs(whole) < 10**target.precision else ERROR


def half_away(value: Fraction) -> int:
    """The nearest whole number; of two as near the one further from zero."""
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


# --- text to value ------------------------------------------------------------------------------------


def _read(text: str, target: Type) -> Outcome:
    if target.kind in (Kind.DATE, Kind.TIMESTAMP):
        ms = _instant(text.strip(" \t\n\r\f\v"))
        if ms is ERROR or target.kind is Kind.TIMESTAMP:
            return ms
        return ms // DAY_MS
    if target.kind is Kind.TIME:
        return _instant(f"1970-01-01 {text.strip()}") if re.fullmatch(r"\s*[0-9:.]+\s*", text) else ERROR
    text = text.strip()
    if target.kind is Kind.BOOLEAN:
        return TRUTHS.get(text.lower(), ERROR)
    if target.is_integer:
        if not re.fullmatch("[+-]?[0-9]{1,40}", text):
            return ERROR
        lowest, highest = BOUNDS[target.kind]
        return int(text) if lowest <= int(text) <= highest else ERROR
    if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?", text):
        if target.kind is Kind.DOUBLE:
            return float(text) if math.isfinite(float(text)) else ERROR
        return _decimal(Fraction(text.removesuffix(".")) * 10**target.scale, target)
    unsigned = text[1:].lower() if text[:1] in ("+", "-") else text.lower()
    if (
        target.kind is Kind.DOUBLE
        and unsigned in SPECIAL
        and not (unsigned == "nan" and unsigned != text.lower())
    ):
        return -SPECIAL[unsigned] if text[0] == "-" else SPECIAL[unsigned]
    return ERROR


def _instant(text: str) -> int | OneOf[Failure.ERROR]:
    """Milliseconds since 1970 of ``YYYY-MM-DD[( |T)HH:MM[:SS[.fraction]][zone]]``."""
    day, _, rest = text.replace("T", " ").replace("t", " ").partition(" ")
    if not re.fullmatch("[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", day) or (text != day and not rest):
        return ERROR
    year, month, day_of_month = (int(part) for part in day.split("-"))
    found = re.fullmatch(
        r"(\d{1,2}):(\d\d)(:(\d\d)(\.\d{1,9})?)?\s*([Zz]|[+-]\d\d(:?\d\d)?)?", rest, re.ASCII
    )
    if rest and found is None:
        return ERROR
    hour, minute, second, fraction, zone = (
        found.group(1, 2, 4, 5, 6) if found else ("0", "0", "0", None, None)
    )
    try:
        moment = datetime(year, month, day_of_month, int(hour), int(minute), int(second or 0))
    except ValueError:
        return ERROR
    ms = (moment - EPOCH) // timedelta(milliseconds=1)
    if fraction:
        ms += math.floor(Fraction(f"0{fraction}") * 1_000)
    if zone and zone not in "Zz":
        minutes = int(zone[1:3]) * 60 + int(zone[3:].removeprefix(":") or 0)
        ms -= minutes * 60_000 if zone[0] == "+" else -minutes * 60_000
    return ms if in_years(ms) else ERROR


# --- value to text ------------------------------------------------------------------------------------


def _write(value: Outcome, source: Type) -> Outcome:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    if isinstance(value, Decimal):
        return f"{value:f}"
    assert isinstance(value, int)
    if source.is_integer:
        return str(value)
    if source.kind is Kind.INTERVAL:
        return _interval(value)
    if source.kind is Kind.TIME:
        return (EPOCH + timedelta(milliseconds=value)).time().isoformat("milliseconds").removesuffix(".000")
    ms = value * DAY_MS if source.kind is Kind.DATE else value
    if not in_years(ms):
        return ERROR
    moment = EPOCH + timedelta(milliseconds=ms)
    if source.kind is Kind.DATE:
        return moment.date().isoformat()
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix(".000")


def _interval(ms: int) -> str:
    """ISO 8601, without parts that are nothing."""
    written, rest = "-P" if ms < 0 else "P", abs(ms)
    for unit, size in (("D", DAY_MS), ("H", 3_600_000), ("M", 60_000)):
        count, rest = divmod(rest, size)
        if unit != "D" and "T" not in written and (count or rest):
            written += "T"
        written += f"{count}{unit}" if count else ""
    if rest:
        written += ("" if "T" in written else "T") + f"{Decimal(rest) / 1_000:.3f}".removesuffix(".000") + "S"
    return written if ms else "PT0S"
