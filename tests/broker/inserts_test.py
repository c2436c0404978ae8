"""INSERT INTO a stream or a table of a real broker: what is written, what is read of it, what is refused."""

from __future__ import annotations

import json

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

COLUMNS = (
    "id BIGINT NOT NULL, v DOUBLE, s STRING, d DECIMAL(8, 2), b BOOLEAN, day DATE, ts TIMESTAMP NOT NULL"
)


def test_rows_become_records_and_are_read(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, columns=COLUMNS))
    handle = shared.register(f"SELECT * FROM {name}")
    status, told = shared.run(
        f"INSERT INTO {name} VALUES\n"
        "(1, 1.5, 'it''s; ü', 12.30, TRUE, DATE '2024-02-29', '2024-01-31 12:00:00'),\n"
        f"(-9223372036854775808, -1e3, NULL, -0.05, FALSE, '2024-01-01', TIMESTAMP '2024-01-31T12:00:01Z'),\n"
        f"(3, 7, '', 5, NULL, NULL, 1706702500000);",
    )
    assert (status, told["state"], told["written"], told["topic"]) == (200, "WRITTEN", 3, name), told
    assert [one["offset"] for one in told["records"]] == [0, 1, 2]
    assert shared.await_rows(handle, 2) == [
        [1, 1.5, "it's; ü", "12.30", True, "2024-02-29", "2024-01-31T12:00:00.000Z"],
        [-(2**63), -1000.0, None, "-0.05", False, "2024-01-01", "2024-01-31T12:00:01.000Z"],
    ]
    values = [json.loads(record.value()) for record in shared.records(name)]
    assert values[2] == {"id": 3, "v": 7, "s": "", "d": "5", "ts": 1706702500000}
    assert [record.key() for record in shared.records(name)] == [None] * 3


def test_rows_that_do_not_fit_are_told_and_none_is_written(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, columns=COLUMNS))
    text = (
        f"INSERT INTO {name} (id, v, day, ts) VALUES\n"
        "  (1, 1, NULL, '2024-01-31'),\n"
        "  ('one', 1, NULL, '2024-01-31'),\n"
        "  (1.5, 1, NULL, '2024-01-31'), (2, 'x', NULL, '2024-01-31'),\n"
        "  (3, 1, 'never', '2024-01-31'),\n"
        "  (NULL, 1, NULL, '2024-01-31'), (4, 1, NULL, NULL), (5, 1, NULL, 1706702400)"
    )
    status, told = shared.run(text)
    assert (status, told["code"], told["line"], told["column"]) == (400, "bad_record", 3, 3), told
    assert [(one["row"], one["line"], one["column"]) for one in told["refused"]] == [
        (2, 3, 3),
        (3, 4, 3),
        (4, 4, 33),
        (5, 5, 3),
        (6, 6, 3),
        (7, 6, 34),
        (8, 6, 54),
    ]
    assert "7 of 8 rows" in told["message"]
    assert not shared.records(name)
    assert shared.run(f"INSERT INTO {name} (id, ts) VALUES (99999999999999999999, 0)")[1]["code"] == (
        "type_mismatch"
    )


def test_a_row_too_far_ahead_is_told(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, columns=COLUMNS))
    ahead = f"INSERT INTO {name} (id, ts) VALUES ('one', 0), (1, '2024-01-31'), (2, '9000-01-01')"
    status, told = shared.run(ahead)
    assert (status, [one["row"] for one in told["refused"]]) == (400, [1, 3])
    assert "beyond the clock plus future_max" in told["refused"][1]["reason"]
    assert not shared.records(name)


def test_a_table_has_keys(shared: Broker, name: str) -> None:
    shared.create(f"CREATE TABLE {name} (k STRING PRIMARY KEY, v INTEGER)")
    handle = shared.register(f"SELECT k, v FROM {name} ORDER BY k")
    assert shared.run(f"INSERT INTO {name} VALUES ('a', 1), ('b', 2)")[1]["written"] == 2
    assert shared.run(f"INSERT INTO {name} (v, k) VALUES (3, 'a')")[0] == 200
    wait_until(lambda: shared.rows(handle) == [["a", 3], ["b", 2]], 120)
    assert {record.key() for record in shared.records(name)} == {b'"a"', b'"b"'}
    status, told = shared.run(f"INSERT INTO {name} VALUES ('c', 1), (NULL, 2)")
    assert (status, [one["row"] for one in told["refused"]]) == (400, [2])
    assert shared.run(f"INSERT INTO {name} (k) VALUES (5)")[1]["code"] == "type_mismatch"
    two = f"{name}_2"
    shared.create(f"CREATE TABLE {two} (a STRING, b BIGINT, v INTEGER, PRIMARY KEY (a, b))")
    assert shared.run(f"INSERT INTO {two} (v, b, a) VALUES (1, 7, 'x')")[0] == 200
    assert [record.key() for record in shared.records(two)] == [b'["x",7]']


def test_many_rows_are_limited(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    rows = ", ".join(f"({i}, {i}, {1_700_000_000_000 + i})" for i in range(1_000))
    assert shared.run(f"INSERT INTO {name} VALUES {rows}")[1]["written"] == 1_000
    status, told = shared.run(f"INSERT INTO {name} VALUES {rows}, (1, 1, 1)")
    assert (status, told["code"]) == (413, "limit_exceeded")
    checked = shared.http.post("/statements/check", json={"sql": f"INSERT INTO {name} VALUES (1, 2, 3)"})
    assert (checked.json()["kind"], checked.json()["error"]) == ("insert", None)
    assert len(shared.records(name)) == 1_000


NESTED = (
    "id BIGINT NOT NULL, tags ARRAY<STRING>, at STRUCT<x DOUBLE, y DOUBLE>, labels MAP<STRING, BIGINT>, "
    "extra JSON, raw BYTES, fw STRING PATH '$.meta.fw', second BIGINT PATH '$.list[1]', ts TIMESTAMP NOT NULL"
)
ROWS = [
    [
        1,
        ["a", "b"],
        {"x": 1.5, "y": None},
        {"k": 2},
        {"n": [1]},
        "aGk=",
        "1.2",
        7,
        "2024-01-31T12:00:00.000Z",
    ],
    [2, [], None, None, "text", None, None, None, "2024-01-31T12:01:00.000Z"],
]


def test_nested_values_and_paths(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, columns=NESTED))
    handle = shared.register(f"SELECT * FROM {name}")
    status, told = shared.run(
        f"""INSERT INTO {name} VALUES
        (1, ARRAY['a', 'b'], STRUCT(1.5e0 AS x, CAST(NULL AS DOUBLE) AS y), '{{"k": 2}}',
         JSON_OBJECT('n', ARRAY[1]), X'6869', '1.2', 5 + 2, '2024-01-31 12:00:00'),
        (1 + 1, '[]', NULL, NULL, '"text"', NULL, NULL, NULL,
         TIMESTAMP '2024-01-31 12:00:00' + INTERVAL '1' MINUTE),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2024-01-31 12:05:00')"""
    )
    assert (status, told["written"]) == (200, 3), told
    assert shared.await_rows(handle, 2) == ROWS
    assert json.loads(shared.records(name)[0].value())["meta"] == {"fw": "1.2"}


def test_rows_of_a_query_become_records(shared: Broker, name: str) -> None:
    first, second, third = (f"{name}_{place}" for place in (1, 2, 3))
    for one in (first, second):
        shared.create(stream_sql(one, columns=NESTED))
    shared.create(stream_sql(third, columns="id BIGINT NOT NULL, n BIGINT, ts TIMESTAMP NOT NULL"))
    handle = shared.register(f"SELECT * FROM {second}")
    rows = f"INSERT INTO {first} (id, tags, fw, second, extra, ts) VALUES"
    assert shared.run(f"{rows} (1, ARRAY['a'], '1', 3, '[1]', 1700000000000)")[0] == 200
    status, told = shared.run(f"INSERT INTO {second} SELECT * FROM {first} WHERE id < 10")
    assert (status, told["state"]) == (201, "RUNNING"), told
    assert told["output"] == {
        "topic": second,
        "format": "record",
        "encoding": "json",
        "operator": "istream",
        "key": None,
        "stream": second,
    }
    more = "(2, NULL, NULL, NULL, NULL, 1700000001000), (11, NULL, NULL, NULL, NULL, 1700000002000)"
    status, told = shared.run(f"{rows} {more}")
    assert status == 200, told
    wait_until(lambda: len(shared.records(second)) == 2, 120)
    values = [json.loads(record.value()) for record in shared.records(second)]
    assert [(one["id"], one["meta"], one["list"]) for one in values] == [
        (1, {"fw": "1"}, [None, 3]),
        (2, {"fw": None}, [None, None]),
    ]
    assert shared.await_rows(handle, 1)[0][:2] == [1, ["a"]]
    status, told = shared.run(
        f"CREATE QUERY {name}_n AS INSERT INTO {third} ISTREAM (SELECT 1, COUNT(*), MAX(ts) FROM {second})"
    )
    assert status == 201, told
    plan = shared.run(f"EXPLAIN QUERY {name}_n")[1]["plan"]
    assert (plan["emit"]["insert"]["stream"], plan["uses"]) == (third, [])
    # nothing goes round, and what is inserted into stays
    status, told = shared.run(f"INSERT INTO {first} (id, ts) SELECT id, ts FROM {third}")
    assert (status, told["code"]) == (400, "not_supported"), told
    assert f"queries insert from it into {third}" in told["message"]
    status, told = shared.run(f"DROP STREAM {third}")
    assert (status, told["code"]) == (409, "source_conflict"), told
    assert shared.run(f"DROP QUERY {name}_n")[0] == 200
    assert shared.run(f"INSERT INTO {first} (id, ts) SELECT id, ts FROM {third}")[0] == 201
