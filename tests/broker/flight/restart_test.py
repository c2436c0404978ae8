"""While a worker that died comes back, no door says that what stands is not there."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.flight as flight

from broker.flight.messages import packed
from tests.broker.running import Broker, unique_name
from tests.kafka import free_ports, wait_until

SQL = "SELECT * FROM {}"


def test_a_worker_that_comes_back_knows_nothing_or_all(kafka: str, tmp_path: Path, service_id: str) -> None:
    postgres, flight_port = free_ports(2)
    settings = {"POSTGRES_PORT": postgres, "FLIGHT_PORT": flight_port}
    one = Broker(kafka, tmp_path / "data", service_id, **settings).start()
    stream, query = unique_name(), unique_name()
    command = flight.FlightDescriptor.for_command(packed("CommandStatementQuery", query=SQL.format(query)))

    def by_flight() -> pa.Table:
        with flight.connect(f"grpc://127.0.0.1:{flight_port}") as client:
            info = client.get_flight_info(command, flight.FlightCallOptions(timeout=30))
            return client.do_get(info.endpoints[0].ticket, flight.FlightCallOptions(timeout=30)).read_all()

    def by_postgres(sql: str) -> list[tuple[object, ...]]:
        with psycopg.connect(
            f"host=127.0.0.1 port={postgres} user=me dbname=tureen", autocommit=True
        ) as door:
            return door.execute(sql).fetchall()

    one.create(f"CREATE STREAM {stream} (k BIGINT)")
    by_name = f"CREATE QUERY {query} AS SELECT COUNT(*) AS n FROM {stream}"
    assert one.http.post("/statements", json={"sql": by_name}).status_code < 300
    wait_until(lambda: by_postgres(SQL.format(query)), 60, "it stands")
    listed = by_postgres("SHOW STREAMS")
    one.children()["broker.worker"].send_signal(signal.SIGKILL)
    answers, refused = 0, set[str | None]()
    until_s = time.monotonic() + 90
    while answers < 20 and time.monotonic() < until_s:
        try:
            assert len(by_postgres(SQL.format(query))) == 1
            assert [row[0] for row in by_postgres("SHOW STREAMS")] == [row[0] for row in listed]
            assert by_postgres("SELECT matviewname FROM pg_matviews") == [(query,)]
            assert by_flight().num_rows == 1
            answers += 1
        except psycopg.OperationalError as away:
            if away.sqlstate not in (None, "57P03"):  # nobody listens, or what stands is not known yet
                raise
            refused.add(away.sqlstate)
        except (flight.FlightUnavailableError, flight.FlightTimedOutError):
            pass
    assert answers == 20
    assert "57P03" in refused
    one.close()
