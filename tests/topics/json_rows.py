"""Data and helpers that ``json_rows_test.py`` shares with other tests."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

NAIVE = datetime(1, 1, 1), datetime(9999, 12, 31)

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "ok": (pa.bool_(), st.booleans()),
    "small": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "large": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "v": (pa.float64(), st.floats()),
    "price": (pa.decimal128(9, 2), st.decimals(-9_999_999, 9_999_999, places=2)),
    'na"me\n': (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    "on": (pa.date32(), st.dates()),
    "ts": (
        pa.timestamp("ms"),
        st.datetimes(*NAIVE).map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    ),
}


def plain(value: Any) -> Any:
    """What JSON has for a value, by hand."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(timespec="milliseconds") + "Z"
        case date():
            return value.isoformat()
        case list():
            return [plain(one) for one in value]
    return value
