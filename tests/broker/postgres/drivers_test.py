"""psycopg and asyncpg against a real broker: every type, both formats, both protocols, cursors, COPY."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import pytest

from tests.broker.doors import RECORDS, TOKEN, Door

FIRST = (
    1,
    -7,
    True,
    1.5,
    Decimal("12345.60"),
    RECORDS[0]["s"],
    date(2013, 1, 31),
    datetime(2013, 1, 31, 9, 15, 0, 123_000, UTC),
    UUID(RECORDS[0]["u"]),
    b"\x00\x01\xff",
    {"k": [1, None]},
    [1, 2],
    {"x": 5, "y": "z"},
)
SECOND = (2, *[None] * 12)
THIRD = (
    3,
    None,
    False,
    -0.1,
    Decimal("-0.05"),
    "",
    date(1969, 12, 31),
    datetime(1999, 12, 31, 23, 59, 59, 999_000, UTC),
    *[None] * 5,
)
EXPECTED = [FIRST, SECOND, THIRD]
SQL = "SELECT * FROM all_types"


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("over", ["all_types", "everything"])
def test_every_type_comes_back(door: Door, binary: bool, over: str) -> None:
    with door.connect() as connection:
        cursor = connection.cursor(binary=binary)
        rows = cursor.execute(f"SELECT * FROM {over}").fetchall()
        assert sorted(rows, key=lambda row: row[0]) == EXPECTED
        codes = [one.type_code for one in cursor.description or ()]
    assert codes == [20, 23, 16, 701, 1700, 25, 1082, 1184, 2950, 17, 114, 1016, 114]


def test_a_simple_query_of_several_statements(door: Door) -> None:
    with door.connect() as connection:
        cursor = connection.execute(f"BEGIN; {SQL} LIMIT 2; SHOW timezone; COMMIT")
        found: list[Any] = []
        while True:
            found.append(cursor.fetchall() if cursor.description else cursor.statusmessage)
            if not cursor.nextset():
                break
    assert found[0] == "BEGIN"
    assert found[1] == EXPECTED[:2]
    assert found[2:] == [[("UTC",)], "COMMIT"]


def test_prepared_and_pipelined(door: Door) -> None:
    with door.connect(prepare_threshold=1) as connection:
        for _ in range(4):
            assert connection.execute(SQL).fetchall() == EXPECTED
        with connection.pipeline():
            cursors = [connection.execute("SELECT id FROM all_types WHERE id = %s", (n,)) for n in (1, 2, 3)]
            assert [one.fetchall() for one in cursors] == [[(1,)], [(2,)], [(3,)]]


@pytest.mark.parametrize("over", ["all_types", "everything"])
def test_parameters(door: Door, over: str) -> None:
    cases = [
        ("id", 3),
        ("v", -0.1),
        ("b", True),
        ("d", Decimal("12345.60")),
        ("s", RECORDS[0]["s"]),
        ("day", date(2013, 1, 31)),
        ("at", datetime(1999, 12, 31, 23, 59, 59, 999_000, UTC)),
        ("u", UUID(RECORDS[0]["u"])),
        ("raw", b"\x00\x01\xff"),
    ]
    if over == "everything":
        cases = [
            case for case in cases if case[0] not in ("v", "u", "d")
        ]  # exact literals are DECIMALs there
    with door.connect() as connection:
        for column, value in cases:
            for form in ("%s", "%b"):
                rows = connection.execute(
                    f"SELECT id FROM {over} WHERE {column} = {form}", (value,)
                ).fetchall()
                at = [one[0] for one in EXPECTED if one[[*_names()].index(column)] == value]
                assert [row[0] for row in rows] == at, (column, form)


def test_nested_values_are_json_in_what_is_evaluated(door: Door) -> None:
    with door.connect() as connection:
        cursor = connection.execute(
            "SELECT a::text, n::text, d::text, id::text, array_length(a, 1), n->>'y', rank() OVER () "
            "FROM all_types WHERE id = 1"
        )
        assert cursor.fetchall() == [("{1,2}", '{"x":5,"y":"z"}', "12345.60", "1", 2, "z", 1)]
        assert [one.name for one in cursor.description or ()] == [
            *("a", "n", "d", "id", "array_length", "?column?", "rank")
        ]


@pytest.mark.parametrize("over", ["all_types", "everything"])
def test_bytes_are_compared_with_postgresql_s_literals(door: Door, over: str) -> None:
    with door.connect() as connection:
        for condition in (
            r"raw = '\x0001FF'",
            r"raw IN ('\x01', '\x0001ff')",
            r"raw = '\x0001ff'::bytea",
            "raw = X'0001ff'",
            r"'\x0001ff' = raw",
        ):
            assert connection.execute(f"SELECT id FROM {over} WHERE {condition}").fetchall() == [(1,)]
        assert connection.execute(f"SELECT id FROM {over} WHERE s = '\\x0001ff'").fetchall() == []
        with pytest.raises((psycopg.errors.InvalidTextRepresentation, psycopg.errors.DatatypeMismatch)):
            connection.execute(rf"SELECT id FROM {over} WHERE raw = '\x0'")


@pytest.mark.parametrize("over", ["all_types", "everything"])
def test_arrays_are_parameters(door: Door, over: str) -> None:
    cases: list[tuple[str, list[Any], list[int]]] = [
        ("id", [1, 3, None], [1, 3]),
        ("id", [], []),
        ("s", ["", 'a "b"', RECORDS[0]["s"]], [1, 3]),
        ("b", [False], [3]),
        ("day", [date(2013, 1, 31)], [1]),
        ("at", [datetime(1999, 12, 31, 23, 59, 59, 999_000, UTC)], [3]),
        ("u", [UUID(RECORDS[0]["u"])], [1]),
        ("raw", [b"\x00\x01\xff", b""], [1]),
    ]
    if over == "all_types":
        cases = [case for case in cases if case[0] != "u"]  # a UUID is text there
    with door.connect() as connection:
        for column, given, expected in cases:
            for form in ("%s", "%b"):
                sql = f"SELECT id FROM {over} WHERE {column} = ANY({form})"
                assert [row[0] for row in connection.execute(sql, (given,))] == expected, (column, form)
        rest = connection.execute(f"SELECT id FROM {over} WHERE id <> ALL(%s)", ([1, 2],)).fetchall()
        assert rest == [(3,)]
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute(f"SELECT id FROM {over} WHERE id = ANY(%s::int8[])", ("{1",))


def test_values_as_text_are_postgresql_s(door: Door) -> None:
    with door.connect() as connection:
        found = connection.execute(
            "SELECT at::text, raw::text, v::text, 10.0::float8::text, ARRAY['a b', NULL]::text, "
            "ARRAY[1.5::float8], '{3,NULL}'::int[] FROM all_types WHERE id = 1"
        ).fetchall()
        assert found == [
            ("2013-01-31 09:15:00.123+00", "\\x0001ff", "1.5", "10", '{"a b",NULL}', [1.5], [3, None])
        ]
        assert connection.execute(
            "SELECT id FROM all_types WHERE id = ANY('{1,3}') ORDER BY 1"
        ).fetchall() == [
            (1,),
            (3,),
        ]
        assert connection.execute("SELECT id FROM all_types WHERE id <> ALL('{1,3}')").fetchall() == [(2,)]
        assert connection.pgconn.exec_(
            b"SELECT 1e20::float8, 10::float8, 0.1::float8 + 0.2::float8"
        ).get_value(0, 2) == (b"0.30000000000000004")
        connection.execute("SET extra_float_digits = 0")
        shown = connection.pgconn.exec_(b"SELECT 1e20::float8, 10::float8, 0.1::float8 + 0.2::float8")
        assert [shown.get_value(0, place) for place in range(3)] == [b"1e+20", b"10", b"0.3"]
        with pytest.raises(psycopg.errors.UndefinedObject):
            connection.execute("SET extra_float_digits = 99")


def test_errors_of_what_is_evaluated_say_where(door: Door) -> None:
    with door.connect() as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn) as refused:
            connection.execute("SELECT id FROM all_types\n WHERE smal = 1")
        assert refused.value.diag.statement_position == "33"
        assert "small" in (refused.value.diag.message_hint or "")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT id / 0 FROM all_types")
        with pytest.raises(psycopg.errors.UndefinedTable) as refused_name:
            connection.execute("SELECT id FROM all_type")
        assert refused_name.value.diag.message_hint == "did you mean all_types?"
        for call, place in (("nosuch(id)", "8"), ("id, upper(id)", "12")):
            with pytest.raises(psycopg.errors.UndefinedFunction) as no_function:
                connection.execute(f"SELECT {call} FROM all_types")
            assert no_function.value.diag.statement_position == place


def test_what_is_refused_says_what_to_write_instead(door: Door) -> None:
    refused = {
        "EXPLAIN SELECT id FROM all_types": ("42P01", "write EXPLAIN QUERY all_types"),
        "CREATE VIEW v1 AS SELECT id FROM all_types": ("42P01", "CREATE VIEW with the text of all_types"),
        "DROP MATERIALIZED VIEW all_types": ("42P01", "write DROP QUERY all_types"),
        "DROP STREAM everything": ("2BP01", "CASCADE"),
        "DROP TABLE everything": ("42809", "write DROP STREAM everything"),
        "SELECT id FROM all_types FOR NO KEY UPDATE SKIP LOCKED": ("0A000", "leave it out"),
        "SELECT id FROM everything FOR UPDATE OF everything": ("0A000", "leave it out"),
    }
    with door.connect() as connection:
        for sql, (state, hint) in refused.items():
            with pytest.raises(psycopg.Error) as told:
                connection.execute(sql)
            assert told.value.diag.sqlstate == state, sql
            assert hint in (told.value.diag.message_hint or ""), sql


def test_what_could_not_be_computed_is_told(door: Door) -> None:
    told: list[str] = []
    with door.connect() as connection:
        connection.add_notice_handler(lambda one: told.append(one.message_primary or ""))
        assert connection.execute("SELECT 1 / (id - 1) AS x FROM everything WHERE id = 1").fetchall() == [
            (None,)
        ]
    assert told == ["1 value could not be computed and is NULL"]


def _names() -> list[str]:
    return ["id", "small", "b", "v", "d", "s", "day", "at", "u", "raw", "j", "a", "n"]


def test_a_parameter_is_a_value_and_never_sql(door: Door) -> None:
    with door.connect() as connection:
        for evil in ("'; DROP STREAM everything; --", "' OR '1' = '1", "$1", "\\'"):
            for over in ("all_types", "everything"):
                assert connection.execute(f"SELECT id FROM {over} WHERE s = %s", (evil,)).fetchall() == []
        assert connection.execute(SQL).fetchall() == EXPECTED


def test_asyncpg(door: Door) -> None:
    async def ask() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=door.port, user="me", password=TOKEN, database="tureen", timeout=20
        )
        try:
            rows = [tuple(one) for one in await connection.fetch(SQL)]
            read = [
                tuple(
                    json.loads(value) if place in (10, 12) and value else value
                    for place, value in enumerate(row)
                )
                for row in rows
            ]
            assert read == EXPECTED
            prepared = await connection.prepare("SELECT id, s FROM all_types WHERE id = $1")
            assert [
                one.type.name for one in prepared.get_parameters() and [prepared.get_attributes()[0]]
            ] == ["int8"]
            assert prepared.get_parameters()[0].name == "int8"
            for number in (1, 2, 3):
                assert (await prepared.fetchrow(number))["id"] == number
            got = await connection.fetch(
                "SELECT id FROM all_types WHERE day <= $1 AND at >= $2 ORDER BY id LIMIT $3",
                date(2013, 1, 31),
                datetime(1990, 1, 1, tzinfo=UTC),
                1,
            )
            assert [one["id"] for one in got] == [1]
            assert await connection.fetchval("SELECT count(*) FROM everything WHERE id > $1", 1) == 2
            async with connection.transaction():
                walked = [one["id"] async for one in connection.cursor(SQL, prefetch=1)]
            assert walked == [1, 2, 3]
            out = io.BytesIO()
            await connection.copy_from_query(
                "SELECT id, b FROM all_types", output=out, format="csv", header=True
            )
            assert out.getvalue() == b"id,b\n1,t\n2,\n3,f\n"
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.fetch("SELECT nosuch FROM everything")
            assert refused.value.sqlstate == "42703"
            assert refused.value.position == "8"
            await connection.reset()
        finally:
            await connection.close()

    asyncio.run(ask())


def test_server_side_cursors(door: Door) -> None:
    with psycopg.connect(door.dsn()) as connection:
        with connection.cursor("rows") as cursor:
            cursor.itersize = 1
            cursor.execute(SQL)
            assert list(cursor) == EXPECTED
        connection.execute("DECLARE c CURSOR FOR SELECT id FROM all_types")
        assert connection.execute("FETCH 2 FROM c").fetchall() == [(1,), (2,)]
        assert connection.execute("MOVE 1 FROM c").statusmessage == "MOVE 1"
        assert connection.execute("FETCH ALL FROM c").fetchall() == []
        connection.execute("CLOSE c")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("FETCH 1 FROM c")


def test_copy_as_text_csv_and_binary(door: Door) -> None:
    columns = "id, b, v, d, s, day, at, raw"
    with door.connect() as connection:
        with connection.cursor().copy(
            f"COPY (SELECT {columns} FROM all_types) TO STDOUT (FORMAT binary)"
        ) as copy:
            copy.set_types(["int8", "bool", "float8", "numeric", "text", "date", "timestamptz", "bytea"])
            assert list(copy.rows()) == [_some(row) for row in EXPECTED]
        with connection.cursor().copy(f"COPY (SELECT {columns} FROM all_types) TO STDOUT") as copy:
            copy.set_types(["int8", "bool", "float8", "numeric", "text", "date", "timestamptz", "bytea"])
            assert list(copy.rows()) == [_some(row) for row in EXPECTED]
        with connection.cursor().copy("COPY all_types TO STDOUT WITH (FORMAT csv, HEADER)") as copy:
            text = b"".join(copy).decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == _names()
    assert rows[1][5] == RECORDS[0]["s"]
    assert json.loads(rows[1][12]) == {"x": 5, "y": "z"}
    assert rows[2] == ["2", *[""] * 12]
    assert '3,,f,-0.1,-0.05,"",' in text  # empty, not NULL


def _some(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[0], *row[2:8], row[9])


def test_portals_give_rows_a_part_at_a_time_and_errors_end_their_group(door: Door) -> None:
    with door.connect() as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn) as refused:
            connection.execute("SELECT id,\n  nosuch FROM everything WHERE id > %s", (1,))
        assert refused.value.diag.statement_position == "14"
        assert refused.value.diag.message_hint
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nowhere")
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("SELEC 1")
        assert connection.execute("SELECT 1 + 1 AS two").fetchall() == [(2,)]


def test_transactions_are_answered_as_clients_expect(door: Door) -> None:
    warned: list[str] = []
    with psycopg.connect(door.dsn()) as connection:
        connection.add_notice_handler(lambda told: warned.append(told.message_primary or ""))
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nowhere")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        with connection.transaction(), connection.transaction():
            connection.execute("SELECT 1")
        connection.execute("INSERT INTO orders VALUES (99, 'gone', 1)")
        connection.rollback()
        assert any("stays so" in one for one in warned)
        connection.execute("SET statement_timeout = '5s'")
        assert connection.execute("SHOW statement_timeout").fetchone() == ("5000",)
        connection.commit()
        connection.read_only = True
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("INSERT INTO orders VALUES (98, 'gone', 1)")
        connection.rollback()


def test_statements_that_are_carried_out(door: Door) -> None:
    with door.connect() as connection:
        shown = connection.execute("SHOW QUERIES").fetchall()
        assert {row[1] for row in shown} >= {"all_types", "per_customer"}
        assert connection.execute("DESCRIBE orders").fetchall()[0] == ("id", "BIGINT", False)
        assert connection.execute("EXPLAIN SELECT id FROM orders").description is not None
        inserted = connection.execute("INSERT INTO orders VALUES (50, 'carl', 1), (51, 'carl', 2)")
        assert (inserted.statusmessage, inserted.rowcount) == ("INSERT 0 2", 2)
        cast = 'INSERT INTO orders VALUES (%s::BIGINT, %s::VARCHAR COLLATE "default", %s::NUMERIC(10, 2))'
        assert (
            connection.execute(cast, (52, "carl", Decimal("3.50"))).rowcount == 1
        )  # as SQLAlchemy writes it
        made = connection.execute(
            "CREATE MATERIALIZED VIEW carls AS SELECT id FROM orders WHERE customer = 'carl'"
        )
        assert made.statusmessage == "CREATE MATERIALIZED VIEW"
        assert connection.execute("DROP MATERIALIZED VIEW carls").statusmessage == "DROP MATERIALIZED VIEW"
        connection.execute("CREATE STREAM passing (id BIGINT)")
        with pytest.raises(psycopg.errors.DuplicateTable):
            connection.execute("CREATE STREAM passing (id DOUBLE)")
        assert connection.execute("DROP STREAM passing").statusmessage == "DROP STREAM"
        connection.execute("CREATE STREAM listed (id BIGINT NOT NULL, a ARRAY<BIGINT>, t ARRAY<STRING>)")
        for values in ((1, [1, 2], ["a", 'b"c']), (2, [2**40, 3], []), (3, None, ["", "NULL"])):
            connection.execute("INSERT INTO listed VALUES (%s, %s, %s)", values)
        nullable = "SELECT is_nullable FROM information_schema.columns WHERE table_name = 'listed'"
        assert connection.execute(f"{nullable} ORDER BY ordinal_position").fetchall() == [
            ("NO",), ("YES",), ("YES",),
        ]  # fmt: skip
        connection.execute("DROP STREAM listed")
        with pytest.raises(psycopg.errors.DuplicateTable):
            connection.execute("CREATE QUERY all_types AS SELECT id FROM orders")
