"""How long one statement, request or flood keeps the other queries of its shard waiting.

A broker of one shard, Kafka, and whoever writes and reads run on the same cores. A quiet stream has a query
that emits each of its records; a reader that sees committed records alone notes when a change reaches it.
Meanwhile a case does what is dear, over a stream with `--rows` retained rows and two that are joined, and is
waited for; its figure is the largest delay of a change of the quiet stream from the case's begin to its end.
Whether the case succeeds, is refused or gives up does not matter: it may only not be in the others' way.

Figures: `lag_s.<case>`; `lag_s.none`, the same over some seconds in which nothing dear is done; `lag_s.max`,
the largest of the cases; `took_s.<case>`, how long a case was waited for.

The promise is one second (docs/operations.md). In the release before, on a quiet machine: 12.9 s `explain`,
7.4 s `plan`, 2.9 s `check`, 5.7 s `violations`, 1.6 s `joins`, 1.5 s `followers`; `explain_analyze`,
`register` and `summary` ended the worker.
"""

import argparse
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx
import numpy as np

from benchmarks.feeding import Feeder
from benchmarks.report import Report
from benchmarks.served import BEGIN_MS, DEADLINE_S, register, serving
from benchmarks.trickle import watch
from topics.producer import BatchProducer
from tureen.protocol import TopicNames, new_handle

CONDITIONS = 300
RATE = 50
QUIET_S = 5.0
SETTLED_S = 2.0
CASE_S = 60.0
"""A case is waited for so long, and then left alone."""
EAGER_STEPS, EAGER_PAUSE_S = 30, 0.2
"""So many rows come, one after another, while answers are kept."""
KEYS = 1_000
MATCHED = 20
"""Records of one request that are compared with all conditions."""
UNREAD = 300
"""Followers that never read."""

TIMED = "ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
DEAR = f"CREATE STREAM dear (id BIGINT, k INTEGER, text STRING, {TIMED}"
BROKEN = (
    "CREATE STREAM broken (id BIGINT, ts TIMESTAMP NOT NULL, CONSTRAINT UNIQUE (id)) WITH (timestamp = 'ts')"
)
LARGE = f"CREATE STREAM large (id BIGINT, text STRING, {TIMED}"
LARGE_RECORDS, LARGE_BYTES = 1_000, 100_000
RESULTS = TopicNames().results + ".quiet"
"""Its own: millions of changes of other queries would keep the reader busy."""
SIDES = ("left_rows", "right_rows")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=200_000, help="of the dear stream (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=841_000, help="of a join (default: %(default)s)")
    parser.add_argument(
        "--bulk", type=int, default=5_000, help="dear queries of one request (default: %(default)s)"
    )
    parser.add_argument("--only", default="", help="cases, by commas; else all")


def run(options: argparse.Namespace) -> Report:
    """One case after another."""
    with serving(TUREEN_SHARDS="1") as (client, kafka):
        for sql in (
            "CREATE STREAM quiet (id BIGINT, ts TIMESTAMP NOT NULL) WITH (partitions = 1) RETAIN 10 SECONDS",
            DEAR,
            BROKEN,
            LARGE,
            *(f"CREATE STREAM {side} (k INTEGER, {TIMED}" for side in SIDES),
        ):
            client.post("/sources", json={"sql": sql}).raise_for_status()
        _load(client, kafka, options)
        cases: dict[str, Callable[[], object]] = {
            "explain": lambda: _statement(client, f"EXPLAIN {_likes()}"),
            "explain_analyze": lambda: _statement(client, f"EXPLAIN ANALYZE {_likes()}"),
            "plan": lambda: _plan(client),
            "check": lambda: client.post("/statements/check", json={"sql": _likes()}, timeout=CASE_S),
            "register": lambda: _registered(client, [f"{_likes()} EMIT CHANGES"]),
            "select": lambda: _registered(client, [_cases()]),
            "having": lambda: _registered(client, [_having()]),
            "eager": lambda: _eager(client, kafka, options.rows),
            "joins": lambda: _registered(client, [_join(n) for n in range(3)]),
            "remove": lambda: _removed(client, [removed]),
            "summary": lambda: _summary(client),
            "violations": lambda: _violations(client, kafka, options.rows // 2),
            "large_records": lambda: _large_records(client, kafka),
            "followers": lambda: _followers(client),
            "bulk": lambda: _bulk(client, options.bulk),
            "match": lambda: _match(client, options.bulk),
            "narrow": lambda: _narrow(client, kafka, options.rows // 2),
        }
        chosen = [name for name in options.only.split(",") if name] or list(cases)
        removed = str(new_handle())
        if "remove" in chosen:  # before anything is measured
            _stands(client, _having(), removed)
        lags, took = _measured(client, kafka, {name: cases[name] for name in chosen if name != "none"})
    return Report(
        {
            **{f"lag_s.{name}": lag_s for name, lag_s in lags.items()},
            "lag_s.max": max((lag_s for name, lag_s in lags.items() if name != "none"), default=0.0),
            **{f"took_s.{name}": took_s for name, took_s in took.items()},
        }
    )


def _measured(
    client: httpx.Client, kafka: str, cases: dict[str, Callable[[], object]]
) -> tuple[dict[str, float], dict[str, float]]:
    """Lag and time of each case, while the quiet stream's records come."""
    register(client, ["SELECT id, ts FROM quiet EMIT CHANGES INTO quiet"])
    seen: list[tuple[float, bytes]] = []
    over = threading.Event()
    watching = threading.Thread(target=watch, args=(kafka, seen, over, RESULTS))
    watching.start()
    feeder = Feeder(kafka, ["quiet"], lines, RATE)
    feeder.start()
    time.sleep(SETTLED_S)
    spans: dict[str, tuple[float, float]] = {}
    for name, case in {"none": lambda: time.sleep(QUIET_S), **cases}.items():
        print(f"{name} ...", flush=True)
        began_s = time.time()
        with suppress(httpx.HTTPError):
            case()
        spans[name] = began_s, time.time()
        time.sleep(SETTLED_S)
    made_ms = feeder.stop().made_ms
    deadline_s = time.monotonic() + DEADLINE_S
    while len(seen) < len(made_ms) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    over.set()
    watching.join()
    found = [(at_s, json.loads(value)) for at_s, value in list(seen)]
    came = {one["id"]: at_s for at_s, one in found if "id" in one and one["id"] < len(made_ms)}
    missing = len(made_ms) - len(came)
    if missing:
        raise RuntimeError(f"{missing} of {len(made_ms)} changes are missing")
    made_s = made_ms / 1e3
    delays_s = np.array([came[i] for i in range(len(made_s))]) - made_s
    lags = {
        name: float(delays_s[(made_s >= began_s - SETTLED_S / 2) & (made_s <= ended_s)].max(initial=0.0))
        for name, (began_s, ended_s) in spans.items()
    }
    return lags, {name: ended_s - began_s for name, (began_s, ended_s) in spans.items()}


def lines(first: int, count: int, now_ms: int) -> list[bytes]:
    """The quiet stream's records as JSON."""
    return [b'{"id":%d,"ts":%d}' % (i, now_ms) for i in range(first, first + count)]


# --- cases ------------------------------------------------------------------------------------------


def _likes() -> str:
    conditions = " OR ".join(f"text LIKE '%{n:03}_x%{n % 7}'" for n in range(CONDITIONS))
    return f"SELECT id FROM dear [UNBOUNDED] WHERE {conditions}"


def _cases() -> str:
    """Its SELECT list is dear, and its condition is none."""
    arms = " ".join(f"WHEN text LIKE '%{n:03}_x%{n % 7}' THEN {n}" for n in range(CONDITIONS))
    return f"SELECT id, CASE {arms} END AS arm FROM dear [UNBOUNDED] EMIT CHANGES"


def _having() -> str:
    """Its HAVING is dear, for as many groups as there are rows."""
    conditions = " OR ".join(f"MAX(text) LIKE '%{n:03}_x%{n % 7}'" for n in range(CONDITIONS))
    return f"SELECT id, COUNT(*) AS n FROM dear [UNBOUNDED] GROUP BY id HAVING {conditions} EMIT CHANGES"


def _join(number: int) -> str:
    return (
        f"SELECT l.k FROM left_rows [RANGE {10 + number} DAYS] l JOIN right_rows [RANGE {10 + number} DAYS] r"
        " ON l.k = r.k EMIT CHANGES"
    )


def _statement(client: httpx.Client, sql: str) -> None:
    client.post("/statements", json={"sql": sql}, timeout=CASE_S)


def _plan(client: httpx.Client) -> None:
    with _standing(client, [_likes()]) as (handle,):
        client.get(f"/queries/{handle}/plan", timeout=CASE_S)


def _registered(client: httpx.Client, texts: list[str]) -> None:
    """Registered, run until they stand (or are refused), removed."""
    with _standing(client, texts) as handles:
        _until_known(client, handles)


def _stands(client: httpx.Client, sql: str, handle: str) -> None:
    """Register it, and wait until it stands."""
    client.post("/queries", json={"sql": sql, "handle": handle}, timeout=CASE_S).raise_for_status()
    deadline_s = time.monotonic() + DEADLINE_S
    while client.get(f"/queries/{handle}").json()["state"] != "RUNNING":
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"what is to be removed does not stand after {DEADLINE_S:.0f} s")
        time.sleep(0.1)


def _removed(client: httpx.Client, handles: list[str]) -> None:
    """Removed, until they are gone."""
    for handle in handles:
        client.delete(f"/queries/{handle}", timeout=CASE_S)
    deadline_s = time.monotonic() + CASE_S
    while time.monotonic() < deadline_s:
        if all(client.get(f"/queries/{handle}").status_code == 404 for handle in handles):
            break
        time.sleep(0.1)


def _until_known(client: httpx.Client, handles: list[str]) -> None:
    """Until the broker knows whether these run, one after another."""
    deadline_s = time.monotonic() + CASE_S
    for handle in handles:
        while client.get(f"/queries/{handle}").json().get("state") == "PENDING":
            if time.monotonic() > deadline_s:
                return
            time.sleep(0.1)


@contextmanager
def _standing(
    client: httpx.Client, texts: list[str], options: dict[str, str] | None = None
) -> Iterator[list[str]]:
    handles = [str(new_handle()) for _ in texts]
    try:
        for sql, handle in zip(texts, handles, strict=True):
            body = {"sql": sql, "handle": handle, "options": options or {}}
            client.post("/queries", json=body, timeout=CASE_S)
        yield handles
    finally:
        _removed(client, handles)


def _eager(client: httpx.Client, kafka: str, rows: int) -> None:
    """Answers that are to be kept, and cannot be brought up to date but by all rows, while rows come."""
    arms = " ".join(f"WHEN k = {n} THEN 'arm {n}'" for n in range(CONDITIONS))
    texts = [
        f"SELECT DISTINCT CASE {arms} ELSE text END AS arm FROM dear [UNBOUNDED]",
        "SELECT k, MAX(text) AS most FROM dear [UNBOUNDED] GROUP BY k",
        "SELECT APPROX_QUANTILE(id, 0.5) AS middle FROM dear [UNBOUNDED]",
    ]
    with _standing(client, texts, {"maintenance": "eager"}) as handles:
        _until_known(client, handles)
        for place in range(EAGER_STEPS):
            _send(kafka, "dear", [b'{"id":0,"k":0,"text":"","ts":%d}' % (BEGIN_MS + rows + place)])
            time.sleep(EAGER_PAUSE_S)


def _summary(client: httpx.Client) -> None:
    sql = "CREATE SUMMARY dearest ON dear (k) WITH GRANULARITY 1 MILLISECOND AND COLLAPSE(4, 3)"
    client.post("/sources", json={"sql": sql}, timeout=CASE_S)
    client.post("/statements", json={"sql": "DROP SUMMARY dearest"}, timeout=CASE_S)


def _violations(client: httpx.Client, kafka: str, count: int) -> None:
    """Rows that all break a promise."""
    _send(kafka, "broken", [b'{"id":1,"ts":%d}' % (BEGIN_MS + i) for i in range(count)])
    _await(client, "broken", count)


def _large_records(client: httpx.Client, kafka: str) -> None:
    """Few records at once, which together are as large as a million small ones, and their changes."""
    text = b"y" * LARGE_BYTES
    with _standing(client, ["SELECT * FROM large EMIT CHANGES"]) as handles:
        _until_known(client, handles)
        _send(
            kafka,
            "large",
            [b'{"id":%d,"text":"%d%b","ts":%d}' % (i, i, text, BEGIN_MS + i) for i in range(LARGE_RECORDS)],
        )
        _await(client, "large", LARGE_RECORDS)


def _followers(client: httpx.Client) -> None:
    """Clients that follow a large answer and never read it."""
    with _standing(client, ["SELECT id, text FROM dear [UNBOUNDED]"]) as (handle,):
        port = client.base_url.port
        assert port is not None
        request = f"GET /queries/{handle}/changes?live=true HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"
        sockets = []
        try:
            for _ in range(UNREAD):
                one = socket.create_connection(("127.0.0.1", port))
                one.sendall(request.encode())
                sockets.append(one)
            time.sleep(QUIET_S)
        finally:
            for one in sockets:
                one.close()


def _bulk(client: httpx.Client, count: int) -> None:
    """Many conditions in one request, none of which an index can help with, over all rows."""
    with _standing_at_once(client, _conditions(count)) as handles:
        _until_known(client, handles)


def _narrow(client: httpx.Client, kafka: str, rows: int) -> None:
    """Many followed queries, each of one key, and a flood of rows for all of them."""
    before = _read(client, "dear")
    texts = [f"SELECT id, text FROM dear WHERE k >= {k} AND k < {k + 1} EMIT CHANGES" for k in range(KEYS)]
    with _standing_at_once(client, texts) as handles:
        _until_known(client, handles)
        ts = BEGIN_MS + before
        _send(
            kafka,
            "dear",
            [b'{"id":%d,"k":%d,"text":"","ts":%d}' % (i, i % KEYS, ts + i) for i in range(rows)],
        )
        _await(client, "dear", before + rows)


def _match(client: httpx.Client, count: int) -> None:
    """Records that are compared with as many conditions, while these stand."""
    records = [{"id": i, "k": i, "text": f"{i:09}_x{i:09}", "ts": BEGIN_MS} for i in range(MATCHED)]
    with _standing_at_once(client, _conditions(count)) as handles:
        _until_known(client, handles)
        client.post("/match", json={"source": "dear", "records": records}, timeout=CASE_S)


def _conditions(count: int) -> list[str]:
    return [f"SELECT id FROM dear WHERE k = {n} OR text LIKE '%{n:05}_x%{n % 7}'" for n in range(count)]


@contextmanager
def _standing_at_once(client: httpx.Client, texts: list[str]) -> Iterator[list[str]]:
    """Queries by one request, whose ids are given; removed by one."""
    handles = [str(new_handle()) for _ in texts]
    body = "\n".join(json.dumps({"sql": s, "handle": h}) for s, h in zip(texts, handles, strict=True))
    try:
        headers = {"Content-Type": "application/x-ndjson"}
        client.post("/queries", content=body, headers=headers, timeout=CASE_S)
        yield handles
    finally:
        client.post("/queries/unregister", json={"queries": handles}, timeout=CASE_S)


# --- rows -------------------------------------------------------------------------------------------


def _load(client: httpx.Client, kafka: str, options: argparse.Namespace) -> None:
    """Retained rows: of the dear stream, and of the two sides of a join with so many pairs."""
    rng = np.random.default_rng(options.seed)
    texts = rng.integers(0, 10**9, options.rows).tolist()
    dear = [
        b'{"id":%d,"k":%d,"text":"%09d_x%09d","ts":%d}'
        % (i, i % KEYS, text, text * 7 % 10**9, BEGIN_MS + i // 10)
        for i, text in enumerate(texts)
    ]
    _send(kafka, "dear", dear)
    side = round(options.pairs**0.5)
    for name in SIDES:
        _send(kafka, name, [b'{"k":1,"ts":%d}' % (BEGIN_MS + i) for i in range(side)])
        _await(client, name, side)
    _await(client, "dear", options.rows)


def _send(kafka: str, topic: str, records: list[bytes]) -> None:
    producer = BatchProducer({"bootstrap.servers": kafka, "batch.size": 1 << 20})
    producer.send_many(topic, records)
    producer.close(DEADLINE_S)


def _read(client: httpx.Client, name: str) -> int:
    """How many records of a topic were read."""
    sources = {one["name"]: one for one in client.get("/sources").json()["sources"]}
    return sum(sources[name]["next_offsets"].values())


def _await(client: httpx.Client, name: str, records: int) -> None:
    """Until so many records of a topic were read."""
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        if _read(client, name) >= records:
            return
        time.sleep(0.05)
    raise RuntimeError(f"not all records of {name} were read in {DEADLINE_S:.0f} s")
