"""The queries of Arroyo's tests: those that are served give the published output, all others are refused.

Our text of each query is in ``arroyo/``, or in ``arroyo/refused/``; ``docs/compatibility.md`` says why. Where
an output is a log of changes, what it adds up to is compared.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.language.expressions import UserFunction
from engine.language.functions import FunctionCatalogue
from engine.model.types import BIGINT
from tests.workloads import loading
from tureen.errors import TureenError

WITH = (
    "WITH (topic = 't', timestamp = 'timestamp', lateness = '1 hour', idle_advances = true) RETAIN 3650 DAYS"
)
CREATE = {
    "cars": '("timestamp" TIMESTAMP NOT NULL, driver_id BIGINT, event_type STRING, location STRING)',
    "impulse": '("timestamp" TIMESTAMP NOT NULL, counter BIGINT, subtask_index BIGINT)',
    "delayed_impulse": '("timestamp" TIMESTAMP NOT NULL, counter BIGINT, subtask_index BIGINT)',
}
ORDERS = """
CREATE TABLE debezium_source (
    id INT PRIMARY KEY, customer_name TEXT, product_name TEXT, quantity INTEGER, price FLOAT,
    order_date TIMESTAMP, status TEXT
) WITH (topic = 'debezium_source')
"""
BIDS = 'CREATE STREAM bids ("timestamp" TIMESTAMP NOT NULL, auction BIGINT) ' + WITH
WITHOUT_INPUT = {"nexmark_q5"}
"""Their input is not published."""
REFUSED_THERE: dict[str, list[dict[str, Any]]] = {
    "updating_inner_join_with_updating": [
        {"left_counter": 1, "counter_mod_2": 1, "right_count": 1},
        {"left_counter": 2, "counter_mod_2": 0, "right_count": 2},
    ]
}
APPROXIMATE = {"approx_distinct_driver", "approx_median_driver"}
LEFT_OUT = {"every_aggregate"}
DOUBLE_NEGATIVE = UserFunction(
    "DOUBLE_NEGATIVE", (BIGINT,), BIGINT, lambda number: -2 * number, deterministic=True
)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
ROW = re.compile(r"^\| `(\w+)` \| .* \| `(\w+)` \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def golden() -> Path:
    return loading.folder("arroyo_golden")


@pytest.fixture(scope="module")
def engine(golden: Path) -> Engine:
    engine = Engine(functions=FunctionCatalogue([DOUBLE_NEGATIVE]))
    for name, columns in CREATE.items():
        engine.create(f"CREATE STREAM {name} {columns} {WITH}")
        file = f"{name.removeprefix('delayed_')}.json"
        loading.read(engine, name, loading.lines(golden / "inputs" / file))
    for name in CREATE:
        loading.let_time_pass(engine, name)
    engine.create(BIDS)
    engine.create(ORDERS)
    changes = loading.lines(golden / "inputs" / "aggregate_updates.json")
    loading.read_changes(engine, "debezium_source", changes)
    return engine


def relation(output: Path) -> list[dict[str, Any]]:
    """The rows that an output stands for."""
    rows: list[dict[str, Any]] = []
    for line in loading.lines(output):
        if "before" not in line:
            rows.append(line)
            continue
        if line["before"] is not None:
            rows.remove(line["before"])
        if line["after"] is not None:
            rows.append(line["after"])
    return rows


def sortable(row: dict[str, Any]) -> str:
    exact = {name: value for name, value in row.items() if name not in APPROXIMATE}
    return json.dumps(exact, sort_keys=True)


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers as floats, instants in UTC without saying so."""
    return {
        name: float(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else value.removesuffix("+00:00")
        if isinstance(value, str)
        else value
        for name, value in row.items()
    }


@pytest.mark.parametrize("text", loading.texts("arroyo"), ids=lambda text: text.stem)
def test_the_published_output(engine: Engine, golden: Path, text: Path) -> None:
    table = loading.answer(engine, text.read_text())
    rows = [comparable(loading.plain_row(row)) for row in table.to_pylist()]
    if text.stem in WITHOUT_INPUT:
        assert rows == []
        return
    file = golden / "golden_outputs" / f"{text.stem}.json"
    published = [comparable(row) for row in REFUSED_THERE.get(text.stem) or relation(file)]
    if text.stem in LEFT_OUT:
        published = [{name: row[name] for name in table.column_names} for row in published]
    assert len(rows) == len(published)
    for mine, theirs in zip(sorted(rows, key=sortable), sorted(published, key=sortable), strict=True):
        for name in APPROXIMATE & mine.keys():
            assert mine.pop(name) == pytest.approx(theirs.pop(name), rel=0.02)
        assert mine == theirs


def refused() -> dict[str, str]:
    """The name of each refused query and its error, as the page lists them."""
    return dict(ROW.findall(PAGE.read_text()))


@pytest.mark.parametrize("text", loading.texts("arroyo/refused"), ids=lambda text: text.stem)
def test_what_is_refused_is_on_the_page(engine: Engine, text: Path) -> None:
    with pytest.raises(TureenError) as refusal:
        engine.prepare(text.read_text())
    assert refusal.value.code == refused()[text.stem]
    assert refusal.value.hint
    assert refusal.value.line is not None


def test_every_query_is_served_or_refused(golden: Path) -> None:
    served = {text.stem for text in loading.texts("arroyo")}
    assert {text.stem for text in loading.texts("arroyo/refused")} == refused().keys()
    assert served | refused().keys() == {file.stem for file in (golden / "queries").glob("*.sql")}
    assert served & refused().keys() == LEFT_OUT
