"""Broken messages: each is an error, or the end of its connection, and the broker goes on as before."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator

import psutil
import psycopg
import pytest

from tests.broker.doors import READ_TOKEN, TOKEN, Door
from tests.broker.postgres.wire import Wire, message, startup

BROKEN = 1_000
LETTERS = b"QPBDECSHXpdcfRZ~\x00\xff"


def broken(random_: random.Random) -> Iterator[bytes]:
    """Messages of a client that was let in: cut, huge, in a wrong order, of random bytes."""
    texts = (b"SELECT 1\0", b"\0", b"no end", b"\xff\xfe\0", b"SELECT * FROM all_types\0", b"'" * 50 + b"\0")
    for _ in range(BROKEN):
        letter = bytes([random_.choice(LETTERS)])
        kind = random_.randrange(7)
        text = random_.choice(texts)
        if kind == 0:
            yield message(letter, text)[: random_.randrange(1, 8)]
        elif kind == 1:
            yield letter + struct.pack("!i", random_.choice([-1, 0, 3, 1 << 30, (1 << 31) - 1])) + text
        elif kind == 2:
            yield message(letter, random_.randbytes(random_.randrange(0, 60)))
        elif kind == 3:
            yield message(b"B", b"\0" + text + struct.pack("!hhi", 0, random_.randrange(-1, 9), -7))
        elif kind == 4:
            yield message(b"P", text + text + struct.pack("!h", random_.randrange(-5, 5)))
        elif kind == 5:
            yield message(b"E", text + struct.pack("!i", random_.randrange(-9, 9))) + message(b"S")
        else:
            yield b"".join(message(bytes([random_.choice(LETTERS)]), text) for _ in range(4))


def test_a_thousand_broken_messages(door: Door) -> None:
    worker = door.broker.children()["broker.worker"]
    wires: list[Wire] = []
    longest_s = 0.0
    before = 0
    for place, data in enumerate(broken(random.Random(31))):
        if place == 200:  # what is loaded once is loaded by now
            before = worker.memory_info().rss
        wire = Wire(door.port)
        wire.log_in(TOKEN)
        wire.send(data)
        if place % 2:
            wire.close()  # in the midst of it
        else:
            wires.append(wire)
        if place % 100 == 0:
            began_s = time.monotonic()
            with door.connect() as connection:
                assert connection.execute("SELECT count(*) FROM all_types").fetchone() == (3,)
            longest_s = max(longest_s, time.monotonic() - began_s)
            for one in wires:
                one.close()
            wires.clear()
    for one in wires:
        one.close()
    assert longest_s < 5.0
    assert worker.memory_info().rss < before + 100 * 1024**2
    assert door.broker.children()["broker.worker"].pid == worker.pid
    assert not [
        one for one in door.broker.events() if one["event"].startswith("postgres_") and "error" in one
    ]


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        struct.pack("!ii", 8, 2 << 16),
        struct.pack("!ii", 8, 4 << 16),
        struct.pack("!ii", 1 << 30, 3 << 16),
        struct.pack("!ii", 0, 3 << 16),
        struct.pack("!ii", 20, 3 << 16) + b"user\0no end!",
        struct.pack("!ii", 8, 80877103) + struct.pack("!ii", 8, 80877103) + b"smuggled",
        startup(user="me") + message(b"Q", b"SELECT 1\0"),
        startup(user="me") + message(b"p", b"PLAIN\0" + struct.pack("!i", 3) + b"abc"),
        startup(user="me") + message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", 4) + b"n,,n"),
        startup(user="me") + message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", -1)),
        startup(user="me", replication="database"),
    ],
)
def test_a_broken_beginning_ends_the_connection(door: Door, first: bytes) -> None:
    with socket.create_connection(("127.0.0.1", door.port), 20) as one:
        one.sendall(first)
        one.settimeout(20)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while part := one.recv(65_536):
                found += part
    assert b"SELECT" not in found
    assert not found or found[:1] in (b"E", b"R", b"N")
    with door.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_an_error_ends_its_group_and_nothing_of_it_is_done(door: Door) -> None:
    wire = Wire(door.port)
    wire.log_in(TOKEN)
    wire.send(
        message(b"P", b"\0SELECT nosuch FROM all_types\0\0\0")
        + message(b"B", b"\0\0\0\0\0\0\0\0")
        + message(b"D", b"P\0")
        + message(b"E", b"\0\0\0\0\0")
        + message(b"P", b"\0CREATE STREAM never (id BIGINT)\0\0\0")
        + message(b"B", b"\0\0\0\0\0\0\0\0")
        + message(b"E", b"\0\0\0\0\0")
        + message(b"S")
    )
    letters = [letter for letter, _ in wire.until_ready()]
    assert letters == [b"1", b"2", b"E", b"Z"]
    wire.send(message(b"Q", b"SELECT id FROM all_types LIMIT 1\0"))
    assert [letter for letter, _ in wire.until_ready()] == [b"T", b"D", b"C", b"Z"]
    wire.close()
    with door.connect() as connection:
        names = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        assert ("never",) not in names


def test_who_reads_nothing_holds_nobody(door: Door) -> None:
    slow = Wire(door.port, buffer=4_096)
    slow.log_in(TOKEN)
    slow.send(message(b"Q", b"SELECT repeat('x', 1000) FROM generate_series(1, 200000)\0"))
    worst_s = 0.0
    with door.connect(READ_TOKEN) as connection:
        for _ in range(200):
            began_s = time.monotonic()
            assert len(connection.execute(f'SELECT * FROM "{door.handle}"').fetchall()) == 3
            worst_s = max(worst_s, time.monotonic() - began_s)
    slow.close()
    assert worst_s < 2.0


def test_a_text_that_is_not_unicode_or_too_long_is_an_error(door: Door) -> None:
    wire = Wire(door.port)
    wire.log_in(TOKEN)
    wire.send(message(b"Q", b"SELECT '\xff'\0"))
    assert [letter for letter, _ in wire.until_ready()] == [b"E", b"Z"]
    wire.send(message(b"Q", b"SELECT " + b"(" * 5_000 + b"1" + b")" * 5_000 + b"\0"))
    assert [letter for letter, _ in wire.until_ready()][-1] == b"Z"
    wire.send(message(b"Q", b"SELECT '" + b"x" * 500_000 + b"'\0"))
    assert [letter for letter, _ in wire.until_ready()][-1] == b"Z"
    wire.close()


def test_a_select_that_is_too_long_for_queries_is_told_its_limit(door: Door) -> None:
    many = " OR ".join(f"n = {number}" for number in range(4_000))
    with door.connect() as connection:
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="32,768"):
            connection.execute(f"SELECT n FROM per_customer WHERE {many}")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="32,768"):
            connection.execute(f"SELECT relname FROM pg_class WHERE {many.replace('n =', 'oid =')}")
        with pytest.raises(psycopg.errors.UndefinedTable, match="nobody"):
            connection.execute(f"SELECT n FROM nobody WHERE {many}")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="operators within each other is 1,000"):
            connection.execute(f"SELECT {'+'.join(['n'] * 2_000)} FROM per_customer")
        few = " OR ".join(f"n = {number}" for number in range(2_000))
        found = connection.execute(f"SELECT customer FROM per_customer WHERE {few}").fetchall()
        assert {("ann",), ("bob",)} <= {*found}


def test_statements_of_one_connection_have_an_end(door: Door) -> None:
    with door.connect() as connection:
        results = [connection.pgconn.prepare(f"s{number}".encode(), b"SELECT 1") for number in range(1_001)]
        assert all(not one.error_message for one in results[:900])
        assert b"prepared statements" in results[-1].error_message
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_idle_connections_cost_little(door: Door) -> None:
    worker: psutil.Process = door.broker.children()["broker.worker"]
    before = worker.memory_info().rss
    wires = [Wire(door.port) for _ in range(100)]
    for one in wires:
        one.log_in(TOKEN)
    assert worker.memory_info().rss - before < 100 * 100 * 1024
    for one in wires:
        one.close()
