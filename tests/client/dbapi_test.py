"""PEP 249 against a real broker, alone and under pandas."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

import tureen
from tests.client.conftest import Broker
from tureen import dbapi, errors
from tureen.dbapi_errors import error_for
from tureen.period import Period, Values, filled_period_of


@pytest.fixture
def connection(broker: Broker) -> Iterator[dbapi.Connection]:
    with dbapi.connect(broker.url) as connected:
        yield connected


def read_sql(text: str, connection: dbapi.Connection, **more: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas knows few connections by name
        return pd.read_sql(text, connection, **more)  # type: ignore[call-overload, no-any-return]


def test_what_the_module_says_of_itself() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert all(hasattr(dbapi, name) for name in dbapi.__all__)
    roots = {
        kind.__name__: kind.__mro__[1].__name__
        for kind in (dbapi.Error, *dbapi.DatabaseError.__subclasses__())
    }
    assert roots == {
        "Error": "Exception",
        "DataError": "DatabaseError",
        "OperationalError": "DatabaseError",
        "IntegrityError": "DatabaseError",
        "InternalError": "DatabaseError",
        "ProgrammingError": "DatabaseError",
        "NotSupportedError": "DatabaseError",
    }
    assert dbapi.Timestamp(2025, 6, 1) == datetime(2025, 6, 1)
    assert dbapi.TimestampFromTicks(0).date() == dbapi.DateFromTicks(0)
    assert dbapi.TimestampFromTicks(0).time() == dbapi.TimeFromTicks(0)


def test_pandas_reads_answers_and_tables_of_statements(connection: dbapi.Connection, trades: str) -> None:
    frame = read_sql(
        f"SELECT symbol, price, at FROM {trades} WHERE price > ? AND symbol = ?;", connection, params=[5, "b"]
    )

    assert frame["price"].tolist() == [7.0, 9.0]
    assert str(frame["at"].dtype).startswith("datetime64")
    assert trades in read_sql("SHOW STREAMS", connection)["name"].tolist()
    in_parts = read_sql(f"SELECT price FROM {trades}", connection, chunksize=4)
    assert [len(part) for part in in_parts] == [4, 4, 2]
    with pytest.raises(pd.errors.DatabaseError, match="prize"):
        read_sql(f"SELECT prize FROM {trades}", connection)


def test_rows_are_fetched_one_by_one_some_or_all(connection: dbapi.Connection, trades: str) -> None:
    with connection.cursor() as cursor:
        assert (cursor.description, cursor.rowcount) == (None, -1)
        cursor.execute(f"SELECT symbol, price, price > 8 AS high, at FROM {trades} WHERE price > 4")
        assert cursor.description is not None
        assert [column[0] for column in cursor.description] == ["symbol", "price", "high", "at"]
        codes = [column[1] for column in cursor.description]
        assert codes == [dbapi.STRING, dbapi.NUMBER, dbapi.TypeCode.BOOLEAN, dbapi.DATETIME]
        assert (cursor.rowcount, cursor.rownumber) == (5, 0)
        assert cursor.fetchone() == ("b", 5.0, False, datetime(1970, 1, 1, 0, 16, 45))
        assert [row[1] for row in cursor.fetchmany()] == [6.0]
        cursor.arraysize = 2
        assert [row[1] for row in cursor.fetchmany()] == [7.0, 8.0]
        assert cursor.rownumber == 4
        assert [row[1] for row in cursor] == [9.0]
        assert (cursor.fetchone(), cursor.fetchmany(3), cursor.fetchall()) == (None, [], [])
        assert cursor.fetch_arrow_table().num_rows == 5
        assert cursor.execute(f"SELECT price FROM {trades} WHERE price > 99").fetchall() == []


def test_a_parameter_stays_one_constant(connection: dbapi.Connection, trades: str) -> None:
    cursor = connection.cursor()
    count = f"SELECT COUNT(*) FROM {trades} WHERE symbol = ?"
    assert cursor.execute(count, ["a"]).fetchone() == (5,)
    assert cursor.execute(count, ["a' OR 'a' = 'a"]).fetchone() == (0,)
    assert cursor.execute(f"SELECT COUNT(*) FROM {trades} WHERE at > ?", (date(1970, 1, 1),)).fetchone() == (
        10,
    )
    for refused in (Decimal(1), b"a", object(), [1]):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(count, [refused])
    for wrong in (["a", "b"], "a", {"symbol": "a"}):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(count, wrong)  # type: ignore[arg-type]


def test_instants_of_a_period_are_parameters(connection: dbapi.Connection, trades: str) -> None:
    cursor = connection.cursor()
    text = f"SELECT price FROM {trades} WHERE symbol = ? FOR SYSTEM_TIME FROM ? TO "
    end = datetime(1970, 1, 1, 0, 16, 44, 500_000)
    rows = cursor.execute(text + "?", ["a", 1_003_000, end]).fetchall()
    assert rows == cursor.execute(text + "'1970-01-01 00:16:44.5'", ("a", "1970-01-01 00:16:43")).fetchall()
    assert min(row[1] for row in rows) == datetime(1970, 1, 1, 0, 16, 43)
    assert max(row[2] for row in rows) == end
    for wrong in ([1, 2], ["a", 1_003_000, "noon"], ["a", 1_003_000, None], ["a"], ["a", 1, 2, 3]):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(text + "?", wrong)


@pytest.mark.parametrize(
    ("text", "values", "rest", "ends", "left"),
    [
        ("SELECT v FROM s FOR SYSTEM_TIME FROM ? TO NOW", [5], "SELECT v FROM s", (5, None), []),
        ("SELECT v FROM s FOR SYSTEM_TIME FROM 3 TO ?", (9,), "SELECT v FROM s", (3, 9), ()),
        ("SELECT ? FROM s FOR SYSTEM_TIME BETWEEN ? AND ?", (1, 2, 3), "SELECT ? FROM s", (2, 4), (1,)),
        (
            "SELECT ':a' FROM s WHERE v > :b FOR SYSTEM_TIME FROM :a TO :b",
            {"a": 1, "b": 2, "c": 3},
            "SELECT ':a' FROM s WHERE v > :b",
            (1, 2),
            {"b": 2, "c": 3},
        ),
    ],
)
def test_what_fills_a_period_is_taken_from_the_values(
    text: str, values: Values, rest: str, ends: tuple[int, int | None], left: Values
) -> None:
    assert filled_period_of(text, values) == (rest, Period(*ends), left)


def test_other_statements_are_carried_out(connection: dbapi.Connection, trades: str) -> None:
    view = f"view_{tureen.new_handle()[:8]}"
    cursor = connection.cursor()
    cursor.execute(f"CREATE VIEW {view} AS SELECT price FROM {trades}")
    assert cursor.description is None
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchone()
    assert cursor.execute(f"DESCRIBE {view}").fetchall() == [("price", "DOUBLE", True)]
    assert cursor.description is not None
    assert [column[1] for column in cursor.description] == [
        dbapi.STRING,
        dbapi.STRING,
        dbapi.TypeCode.BOOLEAN,
    ]
    cursor.execute(f"DROP VIEW {view}")
    connection.commit()


def test_nothing_stands_behind_it(connection: dbapi.Connection, client: tureen.Client, trades: str) -> None:
    before = {one.query_id for one in client.queries()}
    cursor = connection.cursor()
    cursor.execute(tureen.stream(trades).where("price > 3"))
    assert cursor.rowcount == 6
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT v FROM nowhere_at_all")
    assert {one.query_id for one in client.queries()} <= before


def test_refusals_are_exceptions_of_the_standard(connection: dbapi.Connection, trades: str) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="line 1, column 8") as refused:
        cursor.execute(f"SELECT prize FROM {trades}")
    assert refused.value.code == "unknown_column"
    assert isinstance(refused.value.__cause__, errors.UnknownColumn)
    for text in ("", f"SELECT price FROM {trades}; SHOW QUERIES"):
        with pytest.raises(dbapi.ProgrammingError, match="one statement"):
            cursor.execute(text)
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SHOW QUERIES", [1])
    with pytest.raises(connection.IntegrityError):
        cursor.execute(f"CREATE STREAM {trades} (other BIGINT)")
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany("SELECT 1", [[1]])
    with pytest.raises(dbapi.NotSupportedError):
        connection.rollback()


def kinds(root: type[errors.TureenError]) -> list[type[errors.TureenError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in kinds(child))]


@pytest.mark.parametrize("kind", [k for k in kinds(errors.TureenError) if k.__module__ == "tureen.errors"])
def test_every_error_has_one_and_keeps_code_and_text(kind: type[errors.TureenError]) -> None:
    error = kind.__new__(kind)
    errors.TureenError.__init__(error, "m", hint="h", line=1, column=2)
    raised = error_for(error)
    assert (raised.code, str(raised)) == (kind.code, "m (line 1, column 2)\nhint: h")


def test_what_is_closed_stays_closed(broker: Broker, trades: str) -> None:
    connection = dbapi.connect(broker.url)
    cursor = connection.cursor()
    closed = connection.cursor()
    closed.close()
    with pytest.raises(dbapi.InterfaceError):
        closed.execute(f"SELECT price FROM {trades}")
    connection.close()
    connection.close()
    for call in (connection.cursor, connection.commit, lambda: cursor.execute("SHOW QUERIES")):
        with pytest.raises(dbapi.InterfaceError):
            call()
    with pytest.raises(dbapi.OperationalError, match="no broker answers"):
        dbapi.connect("http://127.0.0.1:1").cursor().execute("SHOW QUERIES")


def test_threads_share_a_connection(connection: dbapi.Connection, trades: str) -> None:
    found: dict[int, list[tuple[Any, ...]]] = {}

    def ask(number: int) -> None:
        text = f"SELECT price FROM {trades} WHERE price = ?"
        found[number] = connection.cursor().execute(text, [number]).fetchall()

    threads = [threading.Thread(target=ask, args=(number,)) for number in (5, 6, 7, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [(float(number),)] for number in (5, 6, 7, 8)}
