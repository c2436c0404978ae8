"""Values of answers as tables and lines show them.

| value                    | text                                                        |
|--------------------------|-------------------------------------------------------------|
| NULL                     | NULL                                                        |
| BOOLEAN                  | true, false                                                 |
| DOUBLE                   | the shortest that reads back as the same number: 802231.03, 3, 1e+16 |
| NaN and infinite numbers | NaN, Infinity, -Infinity                                    |
| TIMESTAMP                | 2013-01-01 10:15, with seconds and milliseconds that are not zero |
| ARRAY, STRUCT, MAP       | JSON, as :func:`tureen.columns.json_row` has the values     |
| BYTES                    | base64                                                      |
| else                     | its text                                                    |

Control characters are shown as ``·``.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime
from decimal import Decimal
from typing import Any

from tureen.columns import Pairs, json_row


def cell(value: Any) -> str:
    """A value in a table of a terminal; control characters cannot reach it.

    >>> cell(802231.03), cell(3.0), cell(float("nan")), cell(None), cell((Decimal("1.50"), None, True))
    ('802231.03', '3', 'NaN', 'NULL', '["1.50",null,true]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict | list | tuple):
        value = json.dumps(json_row((_nested(value),))[0], ensure_ascii=False, separators=(",", ":"))
    return "".join(c if c.isprintable() else "·" for c in str(value))


def double(value: float) -> str:
    """The shortest text that reads back as this number.

    >>> double(1234567.891), double(1e15), double(1e-7), double(-0.0), double(float("-inf"))
    ('1234567.891', '1000000000000000', '1e-07', '-0', '-Infinity')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def instant(value: Any) -> str:
    """An instant in UTC, without the parts of it that are zero.

    >>> instant(datetime(2013, 1, 1, 10, 15))
    '2013-01-01 10:15'
    """
    if value is None:
        return "-"
    text: str = value.strftime("%Y-%m-%d %H:%M:%S")
    if value.microsecond:
        return f"{text}.{value.microsecond // 1000:03}"
    return text.removesuffix(":00")


def _nested(value: Any) -> Any:
    """A value of a column, with the objects of Arrow and of JSON as those of answers are."""
    if isinstance(value, dict):
        return Pairs((str(name), _nested(one)) for name, one in value.items())
    if isinstance(value, Pairs):
        return Pairs((name, _nested(one)) for name, one in value)
    if isinstance(value, list | tuple):
        return tuple(_nested(one) for one in value)
    return value
