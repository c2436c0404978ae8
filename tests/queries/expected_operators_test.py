"""The precision that EXPLAIN expects of the operators that changes come from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.dataflow.operator_tree import OperatorTree
from engine.embedding import Embedding
from tests.capacities import small_engine

A = "a SAMPLE(50) [RANGE 10 SECONDS]"


@pytest.fixture(scope="module")
def engine() -> Embedding:
    made: Embedding = small_engine()
    for name in "ab":
        made.create(
            f"CREATE STREAM {name} (id INT, k INT, ts TIMESTAMP NOT NULL) "
            f"WITH (topic = '{name}', timestamp = 'ts')"
        )
    return made


def operators(tree: OperatorTree) -> Iterator[tuple[str, float | None]]:
    """From the answer down, with the share of rows that each is expected to miss."""
    yield tree.operator, None if tree.expected is None else round(tree.expected.fn or 0.0, 3)
    for below in tree.inputs:
        yield from operators(below)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT k FROM a [RANGE 1 SECOND]", [("project", None), ("scan", None)]),
        # Without rows each value is taken to be there twice in the mean.
        (f"SELECT DISTINCT k FROM {A}", [("distinct", 0.311), ("project", 0.5), ("scan", 0.5)]),
        (
            f"SELECT a.id FROM {A} JOIN b SAMPLE(60) [RANGE 9 SECONDS] ON a.k = b.k WHERE a.id > 3",
            [("project", 0.7), ("join", 0.7), ("scan", 0.5), ("project", 0.4), ("scan", 0.4)],
        ),
        # The same operators over other rows are told apart.
        (
            "SELECT k FROM a [RANGE 10 SECONDS] EXCEPT SELECT k FROM b SAMPLE(20) [RANGE 10 SECONDS]",
            [("except", 0.0), ("project", 0.0), ("scan", 0.0), ("project", 0.8), ("scan", 0.8)],
        ),
        (f"SELECT k, COUNT(*) AS n FROM {A} GROUP BY k", [("group", 0.311), ("scan", 0.5)]),
    ],
)
def test_each_operator_says_what_it_misses(
    engine: Embedding, sql: str, expected: list[tuple[str, float | None]]
) -> None:
    plan = engine.explain(sql=sql)
    assert list(operators(plan.graph)) == expected
    last = plan.steps[-1].expected
    assert (None if last is None else last.fn) == (plan.graph.expected and plan.graph.expected.fn)
