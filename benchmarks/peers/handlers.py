"""HTTP handlers as one would write them without standing queries, each in a server process of its own."""

import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import uvicorn
from fastapi import FastAPI
from fastapi.responses import Response

READY_S = 30.0


@contextmanager
def bare(port: int, body: bytes) -> Iterator[None]:
    """A server that answers `GET /constant` with the same bytes."""
    with _running(_bare, port, body):
        yield


@contextmanager
def duckdb_handler(port: int, table: pa.Table, selects: Sequence[str]) -> Iterator[None]:
    """A server that runs a SELECT for each `GET /select/<number>?form=json|arrow`, over `trades`."""
    with _running(_duckdb, port, table, list(selects)):
        yield


@contextmanager
def _running(serve: Callable[..., None], port: int, *arguments: Any) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(port, *arguments), daemon=True)
    process.start()
    deadline_s = time.monotonic() + READY_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        if time.monotonic() > deadline_s or not process.is_alive():
            raise RuntimeError("the peer's server did not start")
        time.sleep(0.05)
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _bare(port: int, body: bytes) -> None:
    app = FastAPI()

    @app.get("/constant")
    async def constant() -> Response:
        return Response(body, media_type="application/json")

    uvicorn.run(app, port=port, log_config=None, access_log=False)


def _duckdb(port: int, table: pa.Table, selects: list[str]) -> None:
    app = FastAPI()
    database = duckdb.connect()
    database.register("arriving", table)
    database.execute("CREATE TABLE trades AS SELECT * FROM arriving")
    of_thread = threading.local()

    @app.get("/select/{number}")
    def select(number: int, form: str) -> Response:
        if not hasattr(of_thread, "cursor"):
            of_thread.cursor = database.cursor()
        found = of_thread.cursor.sql(selects[number])
        if form == "json":
            rows = orjson.dumps({"columns": found.columns, "rows": found.fetchall()})
            return Response(rows, media_type="application/json")
        sink = pa.BufferOutputStream()
        answer = found.to_arrow_table()
        with pa.ipc.new_stream(sink, answer.schema) as writer:
            writer.write_table(answer)
        return Response(sink.getvalue().to_pybytes(), media_type="application/vnd.apache.arrow.stream")

    uvicorn.run(app, port=port, log_config=None, access_log=False)
