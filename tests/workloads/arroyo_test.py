"""The queries of Arroyo's tests: those that are served give the published output, all others are refused.

Our text of each query is in ``arroyo/``, or in ``arroyo/refused/``; ``docs/compatibility.md`` says why. Where
an output is a log of changes, what it adds up to is compared: with answers, and with what the changes of
these add up to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.engine import Engine
from engine.language.functions import FunctionCatalogue
from engine.model.expressions import UserFunction
from engine.model.step import StepResult
from engine.model.types import BIGINT
from tests.capacities import small_engine
from tests.workloads import loading
from tureen.errors import TureenError

WITH = (
    "WITH (topic = 't', timestamp = 'timestamp', lateness = '1 hour', idle_advances = true) RETAIN 3650 DAYS"
)
CREATE = {
    "cars": '("timestamp" TIMESTAMP NOT NULL, driver_id BIGINT, event_type STRING, location STRING)',
    "impulse": '("timestamp" TIMESTAMP NOT NULL, counter BIGINT, subtask_index BIGINT)',
    "delayed_impulse": '("timestamp" TIMESTAMP NOT NULL, counter BIGINT, subtask_index BIGINT)',
    "texts": """("timestamp" TIMESTAMP NOT NULL, value JSON PATH '$')""",
}
FILES = {"delayed_impulse": "impulse", "texts": "cars"}
"""What streams read that have another name than their input."""
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
APPROXIMATE = {"approx_distinct_driver", "approx_median_driver", "approx_percentile_cont_driver"}
SUMS_OF_SQUARES = {"regr_sxx", "regr_sxy"}
"""They are added up in doubles there, exactly here."""
LEFT_OUT = {"every_aggregate"}
DOUBLE_NEGATIVE = UserFunction(
    "DOUBLE_NEGATIVE", (BIGINT,), BIGINT, lambda number: -2 * number, deterministic=True
)
pytestmark = pytest.mark.timeout(120, func_only=True)  # all queries are followed by one fixture
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
ROW = re.compile(r"^\| `(\w+)` \| .* \| `(\w+)` \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def golden() -> Path:
    return loading.folder("arroyo_golden")


def created() -> Engine:
    """With all sources, and nothing in them."""
    engine = small_engine(functions=FunctionCatalogue([DOUBLE_NEGATIVE]))
    for name, columns in CREATE.items():
        engine.create(f"CREATE STREAM {name} {columns} {WITH}")
    engine.create(BIDS)
    engine.create(ORDERS)
    return engine


def bring(engine: Engine, golden: Path) -> Iterator[StepResult]:
    """All input."""
    for name in CREATE:
        rows = loading.lines(golden / "inputs" / f"{FILES.get(name, name)}.json")
        yield from loading.read(engine, name, [row | {"value": json.dumps(row)} for row in rows])
    for name in CREATE:
        yield from loading.let_time_pass(engine, name)
    changes = loading.lines(golden / "inputs" / "aggregate_updates.json")
    yield from loading.read_changes(engine, "debezium_source", changes)


@pytest.fixture(scope="module")
def engine(golden: Path) -> Engine:
    engine = created()
    for _ in bring(engine, golden):
        pass
    return engine


@pytest.fixture(scope="module")
def told(golden: Path) -> dict[str, list[dict[str, Any]]]:
    """What the changes of each query add up to, all of them registered before there is any input."""
    engine = created()
    for text in loading.texts("arroyo"):
        engine.register(text.stem, f"{text.read_text()} EMIT CHANGES")
    rows: dict[str, list[dict[str, Any]]] = {text.stem: [] for text in loading.texts("arroyo")}
    for text in loading.texts("arroyo"):
        rows[text.stem] += engine.view().snapshot(text.stem).table.to_pylist()
    for result in bring(engine, golden):
        for changes in result.changes:
            query_ids = np.repeat(changes.query_ids, np.diff(changes.starts)).tolist()
            weights = changes.weights.tolist()
            for query_id, weight, row in zip(query_ids, weights, changes.table.to_pylist(), strict=True):
                if weight > 0:
                    rows[query_id].append(row)
                else:
                    rows[query_id].remove(row)
    return rows


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
    inexact = APPROXIMATE | SUMS_OF_SQUARES
    exact = {name: value for name, value in row.items() if name not in inexact}
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
    assert_published(loading.answer(engine, text.read_text()).to_pylist(), golden, text.stem)


@pytest.mark.parametrize("text", loading.texts("arroyo"), ids=lambda text: text.stem)
def test_the_published_output_by_its_changes(
    told: dict[str, list[dict[str, Any]]], golden: Path, text: Path
) -> None:
    """Where rows only come, as from closed windows, each is told once, and nothing is taken back."""
    assert_published(told[text.stem], golden, text.stem)


def assert_published(answer: list[dict[str, Any]], golden: Path, name: str) -> None:
    rows = [comparable(loading.plain_row(row)) for row in answer]
    if name in WITHOUT_INPUT:
        assert rows == []
        return
    file = golden / "golden_outputs" / f"{name}.json"
    published = [comparable(row) for row in REFUSED_THERE.get(name) or relation(file)]
    if name in LEFT_OUT:
        published = [{name: row[name] for name in answer[0]} for row in published]
    assert len(rows) == len(published)
    for mine, theirs in zip(sorted(rows, key=sortable), sorted(published, key=sortable), strict=True):
        for names, tolerance in ((APPROXIMATE, 0.02), (SUMS_OF_SQUARES, 1e-10)):
            for name in names & mine.keys():
                assert mine.pop(name) == pytest.approx(theirs.pop(name), rel=tolerance)
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
