"""Functions of times by columns, row by row in the reference, and in DuckDB where it has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.language.evaluate import evaluate
from engine.reference.expressions import evaluate as evaluate_row
from engine.reference.values import ERROR
from tests.differential.times import INSTANTS, PARTS, TRUNCATED, UNITS, ZONES
from tests.language.fixtures import columns_of, outputs, stream_of

STREAMS = stream_of("t TIMESTAMP, u TIMESTAMP, b BIGINT, c BIGINT, s STRING, z STRING")
PATTERNS = ("yyyy-MM-dd HH:mm:ss.SSS", "DD.MM.YYYY HH24:MI:SS", "%d/%b/%Y %I:%M:%S %p", "EEE, d MMM yyyy")
OURS = (
    *(f"EXTRACT({part} FROM t)" for part in PARTS),
    *(f"DATE_TRUNC('{part}', t)" for part in TRUNCATED),
    *(f"DATE_TRUNC('{part}', t, '{zone}')" for part in ("WEEK", "DAY", "HOUR") for zone in ZONES),
    *(f"t AT TIME ZONE '{zone}'" for zone in (*ZONES, "+05:30", "-3", "z")),
    *(f"TO_UTC_TIMESTAMP(t, '{zone}')" for zone in (*ZONES, "+05:30")),
    "t AT TIME ZONE z",
    "TO_UTC_TIMESTAMP(t, z)",
    "DATE_TRUNC('day', t, z)",
    *(f"DATE_DIFF('{unit}', t, u)" for unit in UNITS),
    *(f"TIMESTAMPDIFF({unit}, t, u)" for unit in UNITS),
    *(f"DATEADD({unit}, c, t)" for unit in ("YEAR", "MONTH", "WEEK", "HOUR")),
    "DATEDIFF(t, u)",
    "DATE_BIN(b, t, u)",
    "DATE_BIN(INTERVAL '15' MINUTE, t)",
    "TIME_BUCKET(INTERVAL '1' WEEK, t)",
    "MONTH_BIN(c, t)",
    "MAKE_DATE(c, b, b * 3)",
    "MAKE_TIMESTAMP(c, b, c, b, c, 1.9996)",
    "LAST_DAY(t)",
    "MONTHS_BETWEEN(t, u)",
    "DAYNAME(t)",
    "MONTHNAME(t)",
    "DAYOFYEAR(t)",
    "t::TIME",
    "CAST(t AS TIME) - CAST(u AS TIME)",
    "t::TIME + INTERVAL '7' HOUR * b",
    "CAST(t AS DATE) + u::TIME",
    "t::TIME BETWEEN '09:00' AND TIME '17:30:00.5' OR u::TIME IN (TIME '12:00', t::TIME)",
    "EXTRACT(HOUR FROM t::TIME) * 100 + EXTRACT(MINUTE FROM t::TIME)",
    "MAKE_TIME(b, c, 1.9996)",
    "CAST(s AS TIME)",
    "CAST(CAST(c AS TIME) AS BIGINT)",
    "t - u",
    "CAST(t - u AS STRING)",
    "CAST(CAST(c AS INTERVAL) AS STRING)",
    "t + (u - t) / 2",
    "t - CAST(c AS INTERVAL)",
    "INTERVAL '1 day 2 hours' * b",
    "(t - u) * 1.5",
    "(t - u) / INTERVAL '90' MINUTE",
    "(t - u) % INTERVAL '90' MINUTE",
    "-(t - u) + INTERVAL '1' HOUR",
    "t + INTERVAL '1 month 3 days' * b",
    "t - INTERVAL '-1 month 3 days' * b",
    "CASE WHEN t - u > INTERVAL '1' DAY THEN t - u ELSE INTERVAL '0' SECOND END",
    "COALESCE(NULLIF(t - u, INTERVAL '1' DAY), GREATEST(t - u, INTERVAL '5' DAY))",
    "t - u IN (INTERVAL '1' DAY, u - t) OR t - u BETWEEN -INTERVAL '1' DAY AND INTERVAL '2' DAY",
    "MAKE_INTERVAL(days => b, hours => 2, secs => 1.5)",
    *(f"EXTRACT({part} FROM t - u)" for part in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "EPOCH")),
    "TIMESTAMP_SECONDS(b * 1000000)",
    "FROM_UNIXTIME(b * 1000)",
    "UNIX_TIMESTAMP(t)",
    "TO_TIMESTAMP_LTZ(b, 3)",
    "CONVERT_TZ(t, 'Asia/Kolkata', 'America/Nuuk')",
    "STRFTIME(t, '%Y-%m-%d %H:%M:%S.%g %f %j %A %a %B %b %u %w %G-%V %-d/%-m %I %p %%')",
    "STRFTIME('%y', t)",
    "DATE_FORMAT(t, 'EEEE EEE MMMM MMM DDD')",
    "TO_CHAR(t, 'Q IYYY-IW-ID MON DY FMMonth FMDay US')",
    "TO_CHAR(t, 'Mon dy FMMONTH fmday am PM')",
    "STRPTIME(STRFTIME(t, '%d %m %y'), '%d %m %y')",
    *(f"TO_TIMESTAMP(s, '{pattern}')" for pattern in PATTERNS),
    *(f"TO_DATE(s, '{pattern}')" for pattern in PATTERNS),
    "TO_TIMESTAMP(DATE_FORMAT(t, 'yyyy-MM-dd HH:mm:ss.SSS'), 'yyyy-MM-dd HH:mm:ss.SSS')",
    "TO_TIMESTAMP(STRFTIME(t, '%d/%b/%Y %I:%M:%S %p'), '%d/%b/%Y %I:%M:%S %p')",
)
BOUND = [outputs(f"SELECT {text} AS o FROM t", STREAMS)[0].expression for text in OURS]
TEXTS = st.sampled_from(
    [
        *(
            "2024-02-29 23:59:59.999",
            "2023-02-29 00:00:00.000",
            "29.2.2024 7:05:09",
            "31/Dec/1999 12:00:00 am",
        ),
        *("12:30", "7:05:09.25", " 23:59:59.999 ", "24:00", "1:2"),
        *("31/dec/1999 12:59:59 PM", "Sat, 3 Feb 2024", "Fri, 31 Apr 2024", "", "x", "1.1.0001 24:00:00"),
    ]
)
ROWS = st.lists(
    st.tuples(
        st.none() | INSTANTS,
        INSTANTS,
        st.none() | st.integers(-3, 14) | st.integers(-(10**13), 10**13),
        st.integers(-3, 40) | st.integers(1, 9_999) | st.integers(-(2**63), 2**63 - 1),
        st.none() | TEXTS,
        st.none() | st.sampled_from([*ZONES, "Nowhere/Else", "europe/paris"]),
    ),
    max_size=6,
)


@given(ROWS)
def test_by_column_as_by_row(rows: list[tuple[Any, ...]]) -> None:
    columns = columns_of(STREAMS["t"], rows)
    for text, expression in zip(OURS, BOUND, strict=True):
        found = evaluate(expression, columns, len(rows))
        assert found.column.type == expression.type
        got = found.column.to_arrow().cast(_plain(found.column.to_arrow().type)).to_pylist()
        wrong = found.error if found.error is not None else [False] * len(rows)
        ours = [ERROR if bad else value for value, bad in zip(got, wrong, strict=True)]
        wanted = [evaluate_row(expression, row) for row in rows]
        assert [repr(value) for value in ours] == [repr(value) for value in wanted], (text, rows)


def _plain(type_: Any) -> Any:
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(type_) else type_


THEIRS = {
    **{
        f"EXTRACT({part} FROM t)": f"EXTRACT({part} FROM t)"
        for part in PARTS
        if part not in ("EPOCH", "MILLISECOND", "MICROSECOND")
    },
    "EXTRACT(MILLISECOND FROM t)": "EXTRACT(MILLISECOND FROM t)::BIGINT",
    "EXTRACT(MICROSECOND FROM t)": "EXTRACT(MICROSECOND FROM t)",
    "EXTRACT(EPOCH FROM t)": "FLOOR(EPOCH(t))::BIGINT",
    **{
        f"DATE_TRUNC('{part}', t)": f"DATE_TRUNC('{part}', t)"
        for part in TRUNCATED
        if part not in ("MILLENNIUM", "CENTURY")  # ours begin with the year 1, as in PostgreSQL
    },
    **{
        f"t AT TIME ZONE '{zone}'": f"(t::TIMESTAMP AT TIME ZONE 'UTC') AT TIME ZONE '{zone}'"
        for zone in ZONES
    },
    **{f"TO_UTC_TIMESTAMP(t, '{zone}')": f"(t AT TIME ZONE '{zone}') AT TIME ZONE 'UTC'" for zone in ZONES},
    **{f"DATE_DIFF('{unit}', t, u)": f"DATE_DIFF('{unit}', t, u)" for unit in UNITS if unit != "WEEK"},
    **{f"TIMESTAMPDIFF({unit}, t, u)": f"DATE_SUB('{unit}', t, u)" for unit in UNITS},
    "DATE_BIN(INTERVAL '15' MINUTE, t, u)": "TIME_BUCKET(INTERVAL '15' MINUTE, t, u)",
    "TIME_BUCKET(INTERVAL '1' WEEK, t)": "TIME_BUCKET(INTERVAL '7' DAY, t)",
    "TIME_BUCKET(INTERVAL '5' MONTH, t)": "TIME_BUCKET(INTERVAL '5' MONTH, t)",
    "MAKE_DATE(ABS(c) + 1, b, b)": "MAKE_DATE(ABS(c) + 1, b, b)::TIMESTAMP",
    "LAST_DAY(t)": "LAST_DAY(t)::TIMESTAMP",
    "t::TIME": (
        "STRFTIME(DATE_TRUNC('second', t), '%H:%M:%S') || "
        "CASE WHEN EXTRACT(MS FROM t) % 1000 = 0 THEN '' ELSE STRFTIME(t, '.%g') END"
    ),
    "t::TIME < u::TIME": "",
    "t::TIME BETWEEN TIME '09:00' AND TIME '17:00'": "t::TIME BETWEEN TIME '09:00:00' AND TIME '17:00:00'",
    "(DATE '2024-02-29' + t::TIME)": "",
    "t - u": "EPOCH_MS(t) - EPOCH_MS(u)",
    "t + (t - u)": "",
    "t - INTERVAL '1' HOUR * b": "",
    "t + INTERVAL '1' MONTH * b": "",
    "t + INTERVAL '-1' DAY": "",
    "t - INTERVAL '-1' MONTH": "",
    "t + INTERVAL '1 month -2 hours'": "",
    "t - INTERVAL '-1 month 2 hours' * b": "",
    **{f"EXTRACT({part} FROM t - u)": "" for part in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")},
    "(t - u) > INTERVAL '36' HOUR": "",
    "DAYNAME(t)": "DAYNAME(t)",
    "MONTHNAME(t)": "MONTHNAME(t)",
    "STRFTIME(t, '%Y-%m-%d %H:%M:%S.%g %j %A %a %B %b %u %w %G-%V %I %p')": "",
    "STRPTIME(STRFTIME(t, '%d/%b/%Y %I:%M:%S %p'), '%d/%b/%Y %I:%M:%S %p')": "",
    "STRPTIME(STRFTIME(t, '%d %m %y'), '%d %m %y')": "",
    "t + INTERVAL '1' MONTH": "t + INTERVAL '1' MONTH",
    "MAKE_TIMESTAMP(ABS(c) + 1, b, ABS(c), b, b, 1.5)": "",
}
BOUND_THERE = [outputs(f"SELECT {text} AS o FROM t", STREAMS)[0].expression for text in THEIRS]
MODERN = st.sampled_from([0, -1, 951_782_400_000, 1_711_848_600_000, 1_729_992_600_000]) | st.integers(
    -2_300_000_000_000, 4_000_000_000_000
)


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@given(MODERN, MODERN, st.integers(-2, 14), st.integers(-2, 40) | st.integers(1_000, 3_000))
def test_as_in_duckdb(database: Any, t: int, u: int, b: int, c: int) -> None:
    columns = columns_of(STREAMS["t"], [(t, u, b, c, None, None)])
    texts = [f"TRY({theirs or ours})" for ours, theirs in THEIRS.items()]
    row = database.execute(
        f"SELECT {', '.join(texts)} FROM (SELECT CAST(? AS TIMESTAMP) t, CAST(? AS TIMESTAMP) u, ? b, ? c)",
        [_moment(t), _moment(u), b, c],
    ).fetchone()
    for text, theirs, expression in zip(THEIRS, row, BOUND_THERE, strict=True):
        found = evaluate(expression, columns, 1)
        ours = found.column.to_arrow().to_pylist()[0]
        if isinstance(ours, datetime) and ours.tzinfo is None and isinstance(theirs, datetime):
            theirs = theirs.replace(tzinfo=None)
        if not isinstance(ours, datetime) and isinstance(theirs, datetime) and ours is not None:
            theirs = theirs.date()
        assert ours == theirs, (text, t, u, b, c, ours, theirs)


def _moment(ms: int) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).replace(tzinfo=None)
