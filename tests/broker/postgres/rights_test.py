"""Who may what: the tokens of HTTP, limits, cancellation, TLS."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.broker.doors import READ_TOKEN, TOKEN, Door
from tests.broker.running import READY_S, Broker
from tests.kafka import free_ports, wait_until

CERTIFICATE = Path(__file__).parents[1] / "http" / "tls" / "certificate.pem"


@pytest.mark.parametrize("token", ["wrong-token-of-20-characters", TOKEN + "x", "", READ_TOKEN[:-1]])
def test_a_wrong_password_is_refused(door: Door, token: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"no token of this broker|password"):
        door.connect(token)


def test_the_password_is_never_asked_for_as_it_is(door: Door) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(door.dsn(require_auth="password"))
    with psycopg.connect(door.dsn(require_auth="scram-sha-256")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_read_token_looks_and_changes_nothing(door: Door) -> None:
    with door.connect(READ_TOKEN) as connection:
        assert len(connection.execute(f'SELECT * FROM "{door.handle}"').fetchall()) == 3
        assert connection.execute(f'SELECT count(*) FROM "{door.handle}" WHERE id > 1').fetchone() == (2,)
        names = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        assert ("all_types",) in names
        assert connection.execute("SHOW STREAMS").fetchall()
        assert connection.execute("EXPLAIN SELECT id FROM orders").fetchall()
        refused = [
            "CREATE STREAM mine (id BIGINT)",
            "DROP QUERY all_types",
            "INSERT INTO orders VALUES (9, 'x', 1)",
            "SELECT * FROM orders",
            "SELECT * FROM all_types",
            "SELECT count(*) FROM all_types",
            "COPY (SELECT * FROM all_types) TO STDOUT",
            "REGISTER SELECT id FROM orders",
            "EXPLAIN ANALYZE SELECT id FROM orders",
            "DECLARE c CURSOR FOR SELECT * FROM all_types",
        ]
        for sql in refused:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql)
        for sql in refused[3:6]:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql + " ", prepare=True)
    assert door.broker.http.get("/queries").status_code == 401


def test_who_cancels_needs_the_secret_and_the_connection_goes_on(door: Door) -> None:
    slow = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 10000000) b"
    with door.connect() as connection:
        pid = connection.info.backend_pid
        began_s = time.monotonic()
        with socket.create_connection(("127.0.0.1", door.port)) as other:  # a guess is for nothing
            other.sendall(struct.pack("!IIII", 16, 80877102, pid, 0x12345678))
            assert other.recv(1) == b""
        timer = threading.Timer(1.0, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(slow)
        timer.join()
        assert time.monotonic() - began_s < 20
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.execute("SET statement_timeout = 300")
        with pytest.raises(psycopg.errors.QueryCanceled, match="timeout"):
            connection.execute(slow)
        connection.execute("RESET ALL")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_files_and_other_processes_are_out_of_reach(door: Door) -> None:
    with door.connect() as connection:
        for sql in (
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "SELECT * FROM glob('/*')",
            "SELECT * FROM duckdb_settings()",
            "SELECT * FROM query('SELECT 1')",
            "SELECT content FROM read_text('/etc/passwd')",
            "COPY (SELECT 1) TO '/tmp/file'",
            "COPY (SELECT 1) TO PROGRAM 'id'",
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT getenv('HOME')",
            "INSTALL httpfs",
            "ATTACH '/tmp/x.db'",
            "SELECT * FROM sqlite_master",
            "SELECT * FROM duckdb_tables",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(sql)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_tls_and_the_limit_of_connections(kafka: str, tmp_path: Path, service_id: str) -> None:
    (port,) = free_ports(1)
    one = Broker(
        kafka,
        tmp_path / "data",
        service_id,
        HTTP_TOKEN=TOKEN,
        POSTGRES_PORT=port,
        HTTP_CONNECTIONS_MAX=8,
        FEEDS_MAX=8,
        HTTP_TLS_CERTIFICATE=CERTIFICATE,
        HTTP_TLS_KEY=CERTIFICATE.with_name("key.pem"),
    )
    one.launch()
    dsn = f"host=localhost port={port} user=me password={TOKEN} dbname=tureen gssencmode=disable"
    secure = f"{dsn} sslmode=verify-full sslrootcert={CERTIFICATE}"

    def opens() -> bool:
        try:
            psycopg.connect(secure).close()
        except psycopg.OperationalError:
            return False
        return True

    wait_until(opens, READY_S, "open over TLS")
    with psycopg.connect(secure, autocommit=True) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)
        headers, trust = {"Authorization": f"Bearer {TOKEN}"}, ssl.create_default_context(cafile=CERTIFICATE)
        status = httpx.get(f"https://localhost:{one.port}/status", headers=headers, verify=trust)
        door = {"protocol": "postgresql", "host": "127.0.0.1", "port": port, "tls": True, "token": True}
        assert status.json()["doors"][1] == door | {"connections": 1}
        rows = connection.execute("SELECT repeat('x', 1000) FROM generate_series(1, 20000)").fetchall()
        assert len(rows) == 20_000
        others = [psycopg.connect(f"{dsn} sslmode=disable") for _ in range(7)]
        with pytest.raises(psycopg.OperationalError, match="connections are open"):
            psycopg.connect(f"{dsn} sslmode=disable")
        others.pop().close()
        wait_until(opens, 20, "there is room again")
        for other in others:
            other.close()
    log = one.log.read_text()
    assert TOKEN not in log
    assert one.stop() == 0


def test_a_broker_that_stops_tells_its_clients(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    (port,) = free_ports(1)
    one = Broker(kafka, tmp_path / "data", service_id, POSTGRES_PORT=port).start()
    with psycopg.connect(f"host=127.0.0.1 port={port} user=me dbname=tureen", autocommit=True) as connection:
        assert connection.execute("SELECT current_user").fetchone() == (
            "me",
        )  # no token is set, none is asked
        connection.execute(f"CREATE STREAM {name} (id BIGINT)")
        assert one.stop() == 0
        with pytest.raises(psycopg.errors.CannotConnectNow):
            connection.execute("SELECT 1")
