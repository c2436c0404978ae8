"""A stream of nested values, rows of it, and queries that follow them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import Body, CreateSource, Position, Records, Register, Registration, Step
from topics.codec import decode

COLUMNS = """k INT, j JSON, a ARRAY<INT>, t ARRAY<STRING>, x ARRAY<DOUBLE>, d ARRAY<DECIMAL(6, 2)>,
    n ARRAY<ARRAY<INT>>, i ARRAY<TIMESTAMP>, s STRUCT<a INT, "B c" STRING, l ARRAY<JSON>>,
    m MAP<STRING, DOUBLE>, u UUID, b BYTES, fw STRING PATH '$.j.fw', whole JSON PATH '$',
    txt STRING, v DOUBLE"""
TEXT = f"CREATE STREAM s ({COLUMNS}, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')"


def stream() -> Stream:
    created = parse(TEXT, {}, Limits())
    assert isinstance(created, CreateStream)
    return created.stream


STREAM = stream()

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**63, -(2**63), 2**64, 1.5, 2.0, -0.0, 1e22, 1e-7, 123456789012345680.0]),
    st.sampled_from(["", "a", "fw", '"', "\\", "é", "\u2028", "1", "true", "null", "[1]", "a,b"]),
)
_names = st.sampled_from(["f", "n", "a", "B c", "é"])
_json = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
_texts = st.sampled_from(["", "a", "b", "a,b", '"', "é"])
_instants = st.sampled_from([0, 1_700_000_000_123, "2024-02-29", "2024-02-29T12:00:00+01:00"])
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(-2, 3),
        "j": _json | st.fixed_dictionaries({"fw": st.sampled_from(["1", "2"])}),
        "a": st.lists(st.none() | st.integers(-2, 3), max_size=4),
        "t": st.lists(st.none() | _texts, max_size=3),
        "x": st.lists(st.none() | st.sampled_from([0.0, -0.0, 1, 1.5, 1e22, "NaN", "-Infinity"]), max_size=3),
        "d": st.lists(st.none() | st.sampled_from([1, "1.50", -2.25, "0.01"]), max_size=3),
        "n": st.lists(st.none() | st.lists(st.integers(0, 1), max_size=2), max_size=3),
        "i": st.lists(st.none() | _instants, max_size=2),
        "s": st.fixed_dictionaries(
            {}, optional={"a": st.integers(0, 2), "b C": _texts, "l": st.lists(_json, max_size=2)}
        ),
        "m": st.dictionaries(_names, st.none() | st.sampled_from([1, 0.5, "NaN"]), max_size=3),
        "u": st.sampled_from(
            ["550E8400-e29b-41d4-a716-446655440000", "550e8400e29b41d4a716446655440000", "0" * 32]
        ),
        "b": st.sampled_from(["", "aGk=", "/w=="]),
        "txt": st.sampled_from(
            ["", "a", "[1, 2.0]", '{"fw": 1}', "null", "{", "6869", "aGk=", '{"a": 1, "a": 2}']
        )
        | _json.map(json.dumps),
        "v": st.sampled_from([0.0, -0.0, 1.5, 1e300]),
    },
)


def batch_of(rows: list[dict[str, Any]], first: int = 0) -> Batch:
    values = [json.dumps({**row, "ts": 10 * place}).encode() for place, row in enumerate(rows, first)]
    count = len(rows)
    decoded = decode(STREAM, values, np.zeros(count), np.arange(first, first + count), np.arange(count))
    assert not decoded.bad
    return decoded.batch


def followed(queries: Sequence[str], steps: Sequence[list[dict[str, Any]]]) -> list[Step]:
    """The stream, the queries, then these rows step by step."""
    bodies: list[Body] = [
        CreateSource(STREAM, TEXT),
        Register(tuple(Registration(f"q{place}", text) for place, text in enumerate(queries))),
    ]
    first = 0
    for rows in steps:
        bodies.append(Records(SourceName("s"), batch_of(rows, first), {}))
        first += len(rows)
    return [Step(Position(1, place), 1_000, body) for place, body in enumerate(bodies, start=1)]
