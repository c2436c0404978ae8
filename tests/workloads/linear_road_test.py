"""Linear Road: speeds, volumes, accidents and tolls, on the small files that others test with, and by hand.

Our text of each query is in ``linear_road/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from tests.capacities import small_engine
from tests.workloads import loading

COLUMNS = ("type", "ts", "vid", "spd", "xway", "lane", "dir", "seg", "pos", "qid", "day")
NUMBERS = ", ".join(f"{name} INTEGER" for name in COLUMNS if name != "ts")
REPORT = f"""
CREATE STREAM report (ts TIMESTAMP NOT NULL, {NUMBERS})
WITH (topic = 'report', timestamp = 'ts')
"""
HISTORY = """
CREATE TABLE toll_history (vid INTEGER, day INTEGER, xway INTEGER, toll INTEGER, PRIMARY KEY (vid, day, xway))
WITH (topic = 'toll_history')
"""
PLACES = {
    "type": 0,
    "ts": 1,
    "vid": 2,
    "spd": 3,
    "xway": 4,
    "lane": 5,
    "dir": 6,
    "seg": 7,
    "pos": 8,
    "qid": 9,
}
Report = dict[str, Any]


def of_file(name: str) -> list[Report]:
    file = loading.folder("linear_road") / name
    lines = [[int(number) for number in line.split(",")] for line in file.read_text().split()]
    return [{column: line[place] for column, place in PLACES.items()} | {"day": line[14]} for line in lines]


def report(second: int, vid: int, seg: int, **besides: int) -> Report:
    plain = {"type": 0, "spd": 30, "xway": 0, "lane": 1, "dir": 0, "pos": 5_280 * seg, "qid": -1, "day": -1}
    return plain | {"ts": second, "vid": vid, "seg": seg} | besides


def fresh() -> Engine:
    """Which has read nothing yet."""
    engine = small_engine()
    engine.create(REPORT)
    engine.create(HISTORY)
    return engine


def text_of(name: str) -> str:
    return (Path(__file__).parent / "linear_road" / f"{name}.sql").read_text()


def engine_of(rows: list[Report]) -> Engine:
    """Which has read these, and is at the second of the last of them."""
    engine = fresh()
    last = max(row["ts"] for row in rows)
    behind = report(last, 0, 0) | {"ts": last * 1_000 + 1, "type": -1}
    rows = sorted(({**row, "ts": row["ts"] * 1_000} for row in rows), key=lambda row: row["ts"])
    loading.read(engine, "report", [*rows, behind])
    return engine


def answer(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    rows = loading.answer(engine, text_of(name)).to_pylist()
    return sorted(tuple(loading.plain_row(row).values()) for row in rows)


def test_the_latest_average_velocity() -> None:
    """Each car counts once, however many reports of it there are."""
    engine = engine_of(of_file("lav_input.dat"))
    assert answer(engine, "latest_average_velocity") == [(0, 0, 10, 50.0), (0, 0, 20, 100.0)]


def test_the_number_of_vehicles() -> None:
    engine = engine_of([*of_file("nov_input.dat"), report(120, 0, 0)])
    first, second = "1970-01-01T00:00:00", "1970-01-01T00:01:00"
    assert answer(engine, "number_of_vehicles") == [
        (first, 0, 0, 0, 4),
        (first, 0, 0, 10, 2),
        (first, 0, 0, 20, 1),
        (second, 0, 0, 10, 1),
        (second, 0, 0, 20, 2),
        (second, 0, 0, 30, 2),
        (second, 0, 0, 40, 1),
        (second, 0, 0, 60, 1),
    ]


def stopped(vid: int, seg: int, begin: int) -> list[Report]:
    return [report(begin + 30 * n, vid, seg, spd=0) for n in range(4)]


def test_active_cars_and_accidents() -> None:
    rows = [*stopped(1, 9, 0), *stopped(2, 9, 5), *stopped(3, 4, 0), report(100, 4, 9), report(20, 5, 6)]
    engine = engine_of(rows)
    assert [row[0] for row in answer(engine, "active_cars")] == [1, 2, 3, 4]
    assert [row[0] for row in answer(engine, "accident_cars")] == [1, 2, 3]
    assert answer(engine, "accidents") == [(0, 0, 9)]


@pytest.mark.parametrize(("accident", "tolled"), [(None, [3, 7]), (7, []), (8, [3]), (11, [3]), (12, [3, 7])])
def test_tolls(accident: int | None, tolled: list[int]) -> None:
    """60 slow cars in two segments, quick ones in a third; an accident not far ahead lifts a toll."""
    cars = [
        report(125, 100 * seg + n, seg, spd=70 if seg == 5 else 30) for seg in (3, 5, 7) for n in range(60)
    ]
    wreck = [] if accident is None else stopped(1, accident, 60) + stopped(2, accident, 65)
    engine = engine_of([*cars, *wreck, report(180, 3, 99)])
    assert answer(engine, "tolls") == [(0, 0, seg, 200) for seg in tolled]


def test_a_car_asks_what_it_spent() -> None:
    engine = engine_of([report(10, 5, 0, type=3, qid=77, day=2)])
    made = [{"vid": 5, "day": day, "xway": 0, "toll": 10 * day} for day in (1, 2)]
    changes = [{"before": None, "after": row, "ts_ms": n} for n, row in enumerate(made, start=1)]
    loading.read_changes(engine, "toll_history", changes)
    assert answer(engine, "account_expenditure") == [(5, 77, 20)]


def test_a_car_is_told_as_it_enters_a_segment() -> None:
    """And not where it goes on in it, though that is another report."""
    seconds = {1: [(0, 4), (30, 4), (60, 5), (90, 5)], 2: [(10, 4), (40, 5), (70, 4)]}
    engine = fresh()
    engine.register("notifications", text_of("notifications"))
    engine.follow("notifications")
    rows = [report(1_000 * second, vid, seg) for vid, seen in seconds.items() for second, seg in seen]
    in_order = sorted(rows, key=lambda row: row["ts"])
    results = loading.read(engine, "report", [*in_order, report(100_000, 0, 0, type=2)])
    (changes,) = [changes for result in results for changes in result.changes]
    told = [changes.weights, changes.at_ms, *(column.to_pylist() for column in changes.table.columns)]
    assert list(zip(*told, strict=True)) == [
        (1, 0, 1, 4), (1, 10_000, 2, 4), (1, 40_000, 2, 5), (1, 60_000, 1, 5), (1, 70_000, 2, 4)
    ]  # fmt: skip


def test_a_car_pays_the_toll_of_the_instant_at_which_it_enters() -> None:
    """60 slow cars in segment 3 make a toll of 200 there from 02:59 on; two cars that were elsewhere enter it
    then, one of them twice, and one enters a segment without a toll.
    """
    crowd = [report(125, 300 + n, 3) for n in range(60)]
    before = [report(130, 1, 2), report(131, 2, 2), report(132, 9, 2)]
    after = [report(185, 1, 3), report(186, 2, 3), report(187, 9, 4), report(190, 1, 3)]
    again = [report(200, 1, 2), report(210, 1, 3)]
    engine = engine_of([*crowd, *before, *after, *again])
    assert answer(engine, "account_balance") == [(1, 400), (2, 200)]


def test_every_text_is_asked() -> None:
    source = Path(__file__).read_text()
    assert all(text.stem in source for text in loading.texts("linear_road"))
