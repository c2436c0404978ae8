"""Data and helpers that ``codec_test.py`` shares with other tests."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal

TYPES = {
    "b": BOOLEAN,
    "i": INTEGER,
    "l": BIGINT,
    "f": DOUBLE,
    "d": decimal(6, 2),
    "s": STRING,
    "day": DATE,
    "at": TIMESTAMP,
}

_numbers = st.one_of(
    st.integers(-5, 5).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["-0", "-0.0", "1E5", "1e-7", "01", ".5", "1.", "+1", "1e400", "NaN", "-Infinity", "Inf"]
    ),
    st.integers(-(10**45), 10**45).map(str),
    st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)

_instants = st.one_of(
    st.datetimes().map(lambda d: d.isoformat()),
    st.from_regex(
        r"(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9](:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,8})?)?)?)?"
        r"(Z|z| Z|[+-][0-2][0-9](:?[0-6][0-9])?)?",
        fullmatch=True,
    ),
)

_strings = st.one_of(
    st.text(max_size=6).map(json.dumps),
    st.text(max_size=6).map(lambda s: json.dumps(s, ensure_ascii=False)),
    st.sampled_from(['"\\ud800"', '"\\q"', '"a\tb"', '"\\u0000"', '"', '"\\ud800\\udc00"', '"\\udc00"']),
    st.from_regex(r'"[+-]?[0-9]{0,4}\.?[0-9]{0,3}([eE][+-]?[0-9]{0,2})?"', fullmatch=True),
    _instants.map(json.dumps),
    st.dates().map(lambda d: json.dumps(d.isoformat())),
)

_members = st.one_of(
    _numbers,
    _strings,
    st.sampled_from(["true", "false", "null", "True", "{}", "[]", '{"i": 1, "i": 2}', "[1, {}]", "[}", ""]),
)

_names = st.sampled_from([*TYPES, "x", "y", "\\u0069", "I", "L", "Day", "DAY", "dA\\u0079", "\\u0049", "é"])

_objects = st.lists(st.tuples(_names, _members), max_size=5).map(
    lambda pairs: "{" + ", ".join(f'"{n}": {m}' for n, m in pairs) + "}"
)

_fitting = st.fixed_dictionaries(
    {},
    optional={
        "b": st.sampled_from(["true", "false", "null"]),
        "i": st.integers(-(2**31), 2**31 - 1).map(str),
        "l": st.integers(-(2**63), 2**63 - 1).map(str),
        "f": st.floats(allow_nan=False, allow_infinity=False).map(repr),
        "d": st.decimals(-9999, 9999, places=2).map(str),
        "s": st.text(max_size=5).map(json.dumps),
        "day": st.dates().map(lambda d: json.dumps(d.isoformat())),
        "at": st.one_of(st.integers(-(2**50), 2**50).map(str), _instants.map(json.dumps)),
    },
).map(lambda d: "{" + ",".join(f'"{n}":{m}' for n, m in d.items()) + "}")

_whole = st.one_of(_fitting, _objects, st.text(max_size=8), st.tuples(_objects, _objects).map(" ".join))

_records = st.one_of(
    _whole.map(lambda s: s.encode("utf-8", "surrogatepass")),
    st.tuples(_whole, st.binary(max_size=2)).map(lambda p: p[0].encode("utf-8", "surrogatepass") + p[1]),
    st.none(),
)
