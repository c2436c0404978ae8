"""Values of the last hour: what is kept, gaps, clocks that are set back, and bounded memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.base.entries import QueryEntry
from broker.node.query_table import QueryTable
from broker.observe.curves import Curves
from broker.observe.entity_reading import EntityReading
from broker.observe.history import ATTRIBUTES_MAX, ENTITIES_MAX, EVERY_MS, HOUR_MS, MeasuredHistory
from engine.model.attributes import Attribute, NumberRange
from engine.queries.entities import EntityPart, MeasuredUsage, Report
from tureen.errors import UnknownEntity, UnknownSource

BEGIN_MS = 1_700_000_000_000


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 40), st.none() | st.floats(-1e6, 1e6, width=32)))
)
def test_curves_are_the_values_noted_at_the_last_ticks(
    steps: Sequence[tuple[int, int, float | None]],
) -> None:
    curves, ticks = Curves(10, 8), 8
    expected: dict[int, float | None] = {}
    tick = 1_000
    for within, passed, value in steps:
        if passed < -2:
            expected.clear()
        tick += passed
        at = tick if not expected else max(tick, max(expected))
        expected[at] = value
        curves.note(tick * 10 + within, {"one": (value, "rows")})
        tick = at
        curves._check()
    told = curves.told()
    first = 0 if not expected else max(min(expected), max(expected) - ticks + 1)
    kept = range(first, max(expected) + 1) if expected else range(0)
    assert told["at_ms"] == [10 * at for at in kept]
    for found, at in zip(told["series"]["one"]["values"] if expected else [], kept, strict=True):
        assert found == pytest.approx(expected.get(at), abs=1e-5)
    if expected:
        middle = kept[len(kept) // 2]
        assert curves.told(middle * 10)["at_ms"] == [10 * at for at in kept if at > middle]


def reading(at_s: float, parts: Sequence[EntityPart]) -> EntityReading:
    report = Report("1-1", tuple(parts), 0, 0, {}, {}, {}, {})
    return EntityReading(at_s, {0: report}, {0: 0.0}, {}, {})


def part(name: str, rows_in: int, size: int, attributes: int = 0) -> EntityPart:
    settable = [
        Attribute(f"a{number}_ms", number, "", bounds=NumberRange(0, 9)) for number in range(attributes)
    ]
    more = (Attribute("word", "x", "", choices=("x",)), Attribute("read_only", 1, ""))
    return EntityPart(f"operator/{name}", (*settable, *more), MeasuredUsage(1e9 * rows_in, rows_in), size, 1)


def test_entities_have_rates_and_what_can_be_set_and_go_with_their_history() -> None:
    history = MeasuredHistory()
    history.note_entities(BEGIN_MS, reading(100.0, [part("a", 10, 64, attributes=ATTRIBUTES_MAX + 3)]))
    history.note_entities(BEGIN_MS + 10_000, reading(110.0, [part("a", 30, 96, attributes=2)]))
    told = history.of_entity("0/operator/a", None)
    assert told["at_ms"] == [BEGIN_MS, BEGIN_MS + 10_000]
    series = told["series"]
    assert series["rows_in_per_s"] == {"unit": "rows/s", "values": [None, 2.0]}
    assert series["cpu_share"]["values"] == [None, 2.0]
    assert series["memory_bytes"] == {"unit": "bytes", "values": [64.0, 96.0]}
    assert series["a1_ms"] == {"unit": "ms", "values": [1.0, 1.0]}
    assert series[f"a{ATTRIBUTES_MAX - 1}_ms"]["values"][-1] is None
    assert not {"word", "read_only", f"a{ATTRIBUTES_MAX}_ms"} & series.keys()
    history.note_entities(BEGIN_MS + 20_000, reading(120.0, []))
    with pytest.raises(UnknownEntity):
        history.of_entity("0/operator/a", None)
    assert history.of_entity("0/operator/a", None, stands=True)["at_ms"] == []


def test_history_takes_no_more_memory_than_is_said() -> None:
    history = MeasuredHistory()
    parts = [part(f"{n:05}", 1, 1, attributes=ATTRIBUTES_MAX) for n in range(ENTITIES_MAX + 7)]
    history.note_entities(BEGIN_MS, reading(100.0, parts))
    with pytest.raises(UnknownEntity) as left_out:
        history.of_entity(f"0/operator/{ENTITIES_MAX:05}", None, stands=True)
    assert "7 more are left out" in str(left_out.value.hint)
    of_entities = history.nbytes
    assert of_entities <= 16_000_000
    history.note_broker(BEGIN_MS, {f"s{n}": (1.0, "rows") for n in range(1_000)})
    assert history.nbytes - of_entities <= 200_000


def test_a_pause_is_a_gap_and_what_is_older_than_an_hour_is_forgotten() -> None:
    history = MeasuredHistory()
    history.note_broker(BEGIN_MS, {"n": (1.0, "rows")})
    history.note_broker(BEGIN_MS + 3 * EVERY_MS, {"n": (4.0, "rows")})
    assert history.of_broker(None)["series"]["n"]["values"] == [1.0, None, None, 4.0]
    history.note_broker(BEGIN_MS + HOUR_MS + 2 * EVERY_MS, {"n": (9.0, "rows")})
    told = history.of_broker(None)
    assert len(told["at_ms"]) == HOUR_MS // EVERY_MS
    assert [value for value in told["series"]["n"]["values"] if value is not None] == [4.0, 9.0]
    with pytest.raises(UnknownSource):
        history.of_source("nowhere", None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "end", "pop"]),
            st.sampled_from("abc"),
            st.sampled_from(["RUNNING", "PAUSED", "PENDING", "ERROR"]),
            st.none() | st.integers(0, 2),
            st.sampled_from([(), ("s",), ("s", "t")]),
        )
    )
)
def test_counts_of_queries_are_those_of_their_entries(
    steps: Sequence[tuple[str, str, str, int | None, tuple[str, ...]]],
) -> None:
    table = QueryTable()
    table.changes()
    touched = set()
    for what, name, state, shard, sources in steps:
        if what == "put":
            table[name] = QueryEntry("", state, None, shard, sources, uses=sources[:1])  # type: ignore[arg-type]
        elif what == "end" and name in table:
            table.ended(name, "ERROR", None)
            assert (table[name].state, table[name].shard) == ("ERROR", None)
        elif what == "pop":
            touched |= {name} & table.keys()
            table.pop(name, None)
            continue
        touched |= {name} & table.keys()
        table._check()
    assert table.changes() == touched
    assert sum(table.states().values()) == len(table)
    assert not math.isnan(table.standing)
