"""Functions written in Python: what they are called with, and what becomes of what they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tureen
from engine.algebra.project.stage import Project
from engine.language.evaluate import evaluate, truth
from engine.language.functions import FunctionCatalogue
from engine.language.query import Query
from engine.language.statements import parse
from engine.language.user_functions import user_function
from engine.model.limits import Limits
from engine.model.user_calls import FunctionMeter
from tests.language.fixtures import columns_of, stream_of
from tureen.errors import QueryError
from tureen.udf import declaration_of

STREAMS = stream_of(
    "i INTEGER, b BIGINT, d DOUBLE, m DECIMAL(10, 2), s STRING, k BOOLEAN, day DATE, ts TIMESTAMP"
)
NAMES = [field.name for field in STREAMS["t"].schema]


def bound(sql: str, *functions: Any) -> Query:
    statement = parse(sql, STREAMS, Limits(), functions=FunctionCatalogue(functions))
    assert isinstance(statement, Query)
    return statement


def values(expression: str, function: Any, *rows: dict[str, Any]) -> list[Any]:
    """The expression for each row; "error" where it is an error."""
    project = bound(f"SELECT {expression} AS x FROM t", function).stages[0]
    assert isinstance(project, Project)
    columns = columns_of(STREAMS["t"], [[row.get(name) for name in NAMES] for row in rows])
    result = evaluate(project.outputs[0].expression, columns, len(rows))
    assert result.column.type == project.outputs[0].type
    errors = np.zeros(len(rows), bool) if result.error is None else result.error
    found = result.column.to_arrow().to_pylist()
    return ["error" if wrong else value for value, wrong in zip(found, errors, strict=True)]


def function(call: Callable[..., Any], arguments: list[str], returns: str, **how: bool) -> Any:
    return user_function("mine", arguments, returns, call, **how)


def test_a_row_at_a_time_sees_python_values() -> None:
    seen: list[Any] = []

    def note(*row: Any) -> bool:
        seen.append(row)
        return True

    types = ["INTEGER", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP"]
    row = (1, 2, 0.5, Decimal("1.50"), "é", True, date(2020, 1, 2), datetime(2020, 1, 2, 3))
    rows = dict(zip(NAMES, row, strict=True))
    assert values("MINE(i, b, d, m, s, k, day, ts)", function(note, types, "BOOLEAN"), rows) == [True]
    assert seen == [row]


def test_a_batch_at_a_time_sees_arrays() -> None:
    seen: list[str] = []

    def note(*columns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        seen.extend(str(column.dtype) for column in columns)
        columns[0][:] = 0  # what it does to its arguments is its own affair
        return np.ones(len(columns[0]), bool)

    types = ["INTEGER", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP"]
    row = (1, 2, 0.5, Decimal("1.50"), "é", True, date(2020, 1, 2), datetime(2020, 1, 2, 3))
    mine = function(note, types, "BOOLEAN", vectorised=True)
    rows = dict(zip(NAMES, row, strict=True))
    assert values("MINE(i, b, d, m, s, k, day, ts) AND i = 1", mine, rows, rows) == [True, True]
    assert seen[:8] == [
        "int32",
        "int64",
        "float64",
        "object",
        "object",
        "bool",
        "datetime64[D]",
        "datetime64[ms]",
    ]


@pytest.mark.parametrize(
    ("returns", "result", "expected"),
    [
        ("INTEGER", 5, 5),
        ("INTEGER", np.int64(5), 5),
        ("INTEGER", 2**40, "error"),
        ("INTEGER", 1.5, "error"),
        ("INTEGER", True, "error"),
        ("INTEGER", None, None),
        ("DOUBLE", 5, 5.0),
        ("DOUBLE", "5", "error"),
        ("DECIMAL(4, 1)", Decimal("1.5"), Decimal("1.5")),
        ("DECIMAL(4, 1)", Decimal("1.55"), "error"),
        ("STRING", "a", "a"),
        ("STRING", 5, "error"),
        ("STRING", "x" * 2_000_000, "error"),
        ("BOOLEAN", True, True),
        ("BOOLEAN", 1, "error"),
        ("DATE", date(2020, 1, 2), date(2020, 1, 2)),
        ("TIMESTAMP", datetime(2020, 1, 2, 3), datetime(2020, 1, 2, 3)),
    ],
)
@pytest.mark.parametrize("vectorised", [False, True])
def test_results_are_of_the_declared_type(returns: str, result: Any, expected: Any, vectorised: bool) -> None:
    def give(x: Any) -> Any:
        return [result] * len(x) if vectorised else result

    mine = function(give, ["INTEGER"], returns, vectorised=vectorised)
    assert values("MINE(i)", mine, {"i": 1}, {"i": None}, {"i": 2}) == [expected, None, expected]


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 5)), st.sampled_from([1, 0])), max_size=30),
    st.booleans(),
    st.booleans(),
)
def test_only_rows_that_raise_err(
    rows: list[tuple[int | None, int]], vectorised: bool, deterministic: bool
) -> None:
    def per_row(x: int) -> int | None:
        if x == 3:
            raise ValueError
        return None if x == 4 else x * 2

    def per_batch(x: np.ndarray[Any, Any]) -> Any:
        assert len(x)
        return [per_row(int(value)) for value in x]

    mine = function(
        per_batch if vectorised else per_row,
        ["BIGINT"],
        "BIGINT",
        vectorised=vectorised,
        deterministic=deterministic,
    )
    found = values("MINE(b / i)", mine, *[{"b": b, "i": i} for b, i in rows])
    expected: list[Any] = []
    for b, i in rows:
        expected.append(None if b is None else "error" if i == 0 or b == 3 else None if b == 4 else b * 2)
    assert found == expected


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), ValueError("no")])
def test_whatever_is_raised_errs_its_row_alone(raised: BaseException) -> None:
    def call(x: int) -> int:
        if x == 2:
            raise raised
        return x

    mine = function(call, ["INTEGER"], "INTEGER")
    assert values("MINE(i)", mine, {"i": 1}, {"i": 2}, {"i": 3}) == [1, "error", 3]


def test_few_errors_cost_few_calls() -> None:
    calls: list[int] = []

    def call(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        calls.append(len(x))
        if (x == 500).any():
            raise ValueError
        return x

    mine = function(call, ["INTEGER"], "INTEGER", vectorised=True)
    found = values("MINE(i)", mine, *[{"i": i} for i in range(1_024)])
    assert found == [i if i != 500 else "error" for i in range(1_024)]
    assert len(calls) == 21


def test_too_many_values_are_an_error_of_each_row() -> None:
    mine = function(lambda x: np.append(x, 0), ["INTEGER"], "INTEGER", vectorised=True)
    assert values("MINE(i)", mine, {"i": 1}, {"i": 2}) == ["error", "error"]


def fail_at_two(x: int) -> Any:
    if x == 2:
        raise ValueError("a value of a row")
    return "not a number" if x == 3 else x


@pytest.mark.parametrize("how", ["scalar", "numpy", "arrow"])
def test_errors_are_counted_by_reason_and_told_without_values(how: str) -> None:
    def per_batch(x: Any) -> Any:
        found = [fail_at_two(int(value) if how == "numpy" else value.as_py()) for value in x]
        return pa.array(found, pa.int64()) if all(isinstance(one, int) for one in found) else found

    mine = function(
        fail_at_two if how == "scalar" else per_batch,
        ["INTEGER"],
        "INTEGER",
        vectorised=how != "scalar",
        arrow=how == "arrow",
    )
    found = values("MINE(i)", mine, *({"i": i} for i in (1, 2, 3, None, 2, 5)))
    assert found == [1, "error", "error", None, "error", 5]
    assert mine.meter.rows == 5
    assert mine.meter.errors == {"raised": 2, "mistyped": 1}
    assert mine.meter.told.startswith("ValueError at user_functions_test.py:")
    values("MINE(i)", mine, {"i": 3})
    assert "is not INTEGER" in mine.meter.told
    values("MINE(i)", mine, {"i": 4})
    assert mine.meter.errors == {"raised": 2, "mistyped": 2}


def test_a_function_of_arrow_takes_arrays_of_arrow() -> None:
    seen: list[pa.DataType] = []

    def note(*columns: pa.Array) -> pa.Array:
        seen.extend(column.type for column in columns)
        return pc.is_valid(columns[0])

    types = ["INTEGER", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP"]
    row = (1, 2, 0.5, Decimal("1.50"), "é", True, date(2020, 1, 2), datetime(2020, 1, 2, 3))
    mine = function(note, types, "BOOLEAN", vectorised=True, arrow=True)
    found = values("MINE(i, b, d, m, s, k, day, ts)", mine, dict(zip(NAMES, row, strict=True)), {})
    assert found == [True, None]
    assert [str(one) for one in seen] == [
        "int32",
        "int64",
        "double",
        "decimal128(10, 2)",
        "string",
        "bool",
        "date32[day]",
        "timestamp[ms]",
    ]


def test_of_several_functions_the_one_that_decides_most_for_its_cost_is_called_first() -> None:
    clock, seen = [0], Counter[str]()

    def taking(name: str, ns: int, low: int) -> Any:
        def choose(x: int) -> bool:
            clock[0] += ns
            seen[name] += 1
            return x >= low

        meter = FunctionMeter(lambda: clock[0])
        return user_function(name, ["INTEGER"], "BOOLEAN", choose, deterministic=True, meter=meter)

    dear, cheap, sharp = taking("DEAR", 900, 50), taking("CHEAP", 100, 10), taking("SHARP", 100, 90)
    project = bound("SELECT DEAR(i) AND CHEAP(i) AND SHARP(i) AS x FROM t", dear, cheap, sharp).stages[0]
    assert isinstance(project, Project)
    columns = columns_of(STREAMS["t"], [[i if name == "i" else None for name in NAMES] for i in range(100)])
    expression = project.outputs[0].expression
    for _ in range(2):
        evaluate(expression, columns, 100)
    before = seen.copy()
    result = evaluate(expression, columns, 100)
    assert result.column.values.tolist() == [i >= 90 for i in range(100)]
    assert {name: seen[name] - before[name] for name in seen} == {"SHARP": 100, "CHEAP": 10, "DEAR": 10}


def test_arrow_arrays_may_be_given() -> None:
    mine = function(lambda s: pa.array([x + "!" for x in s]), ["STRING"], "STRING", vectorised=True)
    assert values("MINE(s)", mine, {"s": "a"}, {"s": None}, {"s": "b"}) == ["a!", None, "b!"]


def test_it_comes_last_and_sees_what_is_left() -> None:
    seen: list[list[int]] = []

    def call(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        seen.append(x.tolist())
        return x % 2 == 0

    mine = function(call, ["INTEGER"], "BOOLEAN", vectorised=True, deterministic=True)
    query = bound("SELECT * FROM t WHERE mine(i) AND b > 3 AND (k OR mine(i))", mine)
    assert query.scan.predicate is not None
    rows = [
        (i, b, k) for i, b, k in ((1, 9, True), (2, 9, False), (3, 1, True), (4, None, None), (5, 9, None))
    ]
    table = [[{"i": i, "b": b, "k": k}.get(name) for name in NAMES] for i, b, k in rows]
    true, error = truth(query.scan.predicate, columns_of(STREAMS["t"], table), len(rows))
    assert true.tolist() == [False, True, False, False, False]
    assert error is None
    assert all(3 not in batch for batch in seen)


def test_equal_calls_are_one_predicate() -> None:
    mine = function(lambda x: x > 1, ["DOUBLE"], "BOOLEAN", vectorised=True)
    one = bound("SELECT * FROM t WHERE mine(d)", mine)
    other = bound("SELECT i FROM t WHERE MINE( d )", mine)
    assert one.predicates() == other.predicates()


def test_constants_are_not_folded() -> None:
    calls: list[int] = []
    mine = function(lambda x: calls.append(x) or x, ["INTEGER"], "INTEGER")
    bound("SELECT * FROM t WHERE mine(1) = 1", mine)
    assert calls == []
    assert values("mine(1)", mine, {}, {}) == [1, 1]
    assert calls == [1, 1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT mine() FROM t",
        "SELECT mine(i, i) FROM t",
        "SELECT mine(s) FROM t",
        "SELECT mine(*) FROM t",
        "SELECT mine(DISTINCT i) FROM t",
        "SELECT mina(i) FROM t",
    ],
)
def test_wrong_calls_are_refused(sql: str) -> None:
    mine = function(lambda x: x, ["INTEGER"], "INTEGER")
    with pytest.raises(QueryError) as caught:
        bound(sql, mine)
    assert caught.value.column
    assert caught.value.hint


@pytest.mark.parametrize("name", ["upper", "count", "SELECT", "a b", "", "ceiling", "now", "stddev", "é"])
def test_names_that_are_taken_or_none_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="function"):
        FunctionCatalogue([user_function(name, ["INTEGER"], "INTEGER", abs)])


def test_two_of_one_name_are_refused() -> None:
    one = user_function("mine", ["INTEGER"], "INTEGER", abs)
    with pytest.raises(ValueError, match="taken"):
        FunctionCatalogue([one, one])


@pytest.mark.parametrize("type_", ["INTEGR", "ARRAY", "INTEGER extra", "", "DECIMAL(99, 1)"])
def test_types_that_there_are_not_are_refused(type_: str) -> None:
    with pytest.raises(QueryError):
        user_function("mine", [type_], "INTEGER", abs)


def test_the_declaration_says_what_was_declared() -> None:
    @tureen.function(arguments=["DOUBLE", "STRING"], returns="BOOLEAN", vectorised=True)
    def mine(x: Any, s: Any) -> Any:
        return x

    found = declaration_of(mine)
    assert found is not None
    assert (found.name, found.arguments, found.returns) == ("mine", ("DOUBLE", "STRING"), "BOOLEAN")
    assert (found.vectorised, found.deterministic) == (True, False)
    assert mine(5, "a") == 5
    assert declaration_of(abs) is None
