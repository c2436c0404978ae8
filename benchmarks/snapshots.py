"""1,000 answers a second of up to 100 rows over HTTP while data flows: how long each takes.

A whole broker, Kafka, whoever writes the records and whoever asks run on the same cores. 20,000 records a
second (six columns, JSON) come into a stream over which 1,000 queries stand, each over the last 5 seconds:
seven of ten want the trades of one instrument (50 rows), two those above a price as well (25), one counts by
venue over ten instruments (16). Requests are Poisson arrivals, each for a query at random, every other one as
JSON and as Arrow. They are due at their times whatever the broker does, and what they wait for a connection
counts (an open loop, no coordinated omission). At the end answers of 40 queries are compared with numpy.

Beside it, while the same data flows into the same broker: the bare HTTP server (uvicorn, FastAPI, a handler
that returns an answer made before), which tells what the transport takes; and the same SELECTs run by DuckDB
in such a handler, over a table in memory that holds the rows of one window and to which nothing is added.

Figures: `per_s`, answers a second; `ms.p50`, `ms.p99`, `ms.max`; `ms.p99.json`, `ms.p99.arrow`;
`rows.mean`, `rows.max` of an answer; `records_per_s` that were read meanwhile; `bare_ms.p50`, `bare_ms.p99`;
`duckdb_per_s`, `duckdb_ms.p99`; `asking_late_ms`, the longest that the asking process itself was behind.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping

import httpx
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.feeding import Fed, Feeder
from benchmarks.open_loop import Answered, Load, ask
from benchmarks.peers.handlers import bare, duckdb_handler
from benchmarks.ports import free_ports
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.served import DEADLINE_S, register, serving

INSTRUMENTS = 2_000
VENUES = ("XAMS", "XLON", "XNYS", "XTKS")
WINDOW_S = 5
CONNECTIONS = 64
COMPARED = 40
SEED = 7
"""Seed of the records, which another process makes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=1_000, help="how many stand (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=1_000, help="answers a second (default: %(default)s)")
    parser.add_argument("--records", type=int, default=20_000, help="a second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of asking (default: %(default)s)")
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="the bare server and DuckDB"
    )


def run(options: argparse.Namespace) -> Report:
    """Let data flow, ask, stop, compare."""
    rng = np.random.default_rng(options.seed)
    texts = list(select(rng, options.queries))
    with serving() as (client, kafka):
        create(client)
        handles = register(client, texts)
        feeder = Feeder(kafka, ["trades"], lines, options.records)
        feeder.start()
        await_full(client)
        picked = rng.integers(0, len(texts), int(options.rate * options.seconds))
        port = client.base_url.port
        assert port is not None
        warm = Load.steady(requests(handles, picked[: options.rate]), options.rate / 2, rng)
        ask(port, warm, CONNECTIONS)
        before, began_s = read(client), time.perf_counter()
        answered = ask(port, Load.steady(requests(handles, picked), options.rate, rng), CONNECTIONS)
        flowed = (read(client) - before) / (time.perf_counter() - began_s)
        tell("broker", answered)
        figures = told(answered) | {"records_per_s": flowed} | sizes(client, handles)
        if options.peers:
            sample = client.get(f"/queries/{handles[0]}/snapshot").content
            figures |= peers(sample, texts, picked[: len(picked) // 2], options.rate, rng)
        compare(client, handles, texts, feeder.stop())
    return Report(figures, _plot(answered))


def select(rng: np.random.Generator, count: int) -> Iterator[str]:
    """The texts of the queries."""
    window = f"[RANGE {WINDOW_S} SECONDS]"
    for number in range(count):
        one = int(rng.integers(0, INSTRUMENTS - 10))
        if number % 10 == 9:
            yield (
                "SELECT venue, COUNT(*) AS n, AVG(price) AS mean, MAX(price) AS high "
                f"FROM trades {window} WHERE instrument BETWEEN {one} AND {one + 9} GROUP BY venue"
            )
        else:
            above = " AND price > 50" if number % 10 >= 7 else ""
            yield f"SELECT id, price, size, venue, ts FROM trades {window} WHERE instrument = {one}{above}"


def records(first: int, count: int) -> dict[str, npt.NDArray[np.int64]]:
    """Columns of the records from number `first` on, but for `ts`; price in cents, venue by its place."""
    number = np.arange(first, first + count, dtype=np.uint64)
    mixed = (number + SEED) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)

    def part(bits: int, size: int) -> npt.NDArray[np.int64]:
        return ((mixed >> np.uint64(bits)) % np.uint64(size)).astype(np.int64)

    return {
        "id": number.astype(np.int64),
        "instrument": part(0, INSTRUMENTS),
        "price": part(20, 10_000),
        "size": part(36, 500) + 1,
        "venue": part(48, len(VENUES)),
    }


def lines(first: int, count: int, now_ms: int) -> list[bytes]:
    """The records as JSON."""
    rows = zip(*(column.tolist() for column in records(first, count).values()), strict=True)
    return [
        b'{"id":%d,"instrument":%d,"price":%d.%02d,"size":%d,"venue":"%s","ts":%d}'
        % (number, instrument, *divmod(price, 100), size, VENUES[venue].encode(), now_ms)
        for number, instrument, price, size, venue in rows
    ]


def create(client: httpx.Client) -> None:
    """The stream of trades, in event time, in order."""
    sql = (
        "CREATE STREAM trades (id BIGINT, instrument INTEGER, price DOUBLE, size INTEGER, venue STRING, "
        "ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts', partitions = 1)"
    )
    client.post("/sources", json={"sql": sql}).raise_for_status()


def read(client: httpx.Client) -> int:
    """Records that the broker has read so far."""
    text = client.get("/metrics").text
    return int(float(text.partition('tureen_records_total{stream="trades"}')[2].partition("\n")[0]))


def await_full(client: httpx.Client) -> None:
    """Until the stream has brought a whole window."""
    deadline_s = time.monotonic() + DEADLINE_S
    first_ms = None
    while time.monotonic() < deadline_s:
        (source,) = client.get("/sources").json()["sources"]
        now_ms = source["now_ms"]
        first_ms = first_ms or now_ms
        if now_ms is not None and now_ms - first_ms > 1_000 * WINDOW_S:
            return
        time.sleep(0.1)
    raise SystemExit("no data came")


def requests(handles: list[str], picked: npt.NDArray[np.int64]) -> list[bytes]:
    """A request for each, every other one for Arrow."""
    return [
        f"GET /queries/{handles[query]}/snapshot?format={('json', 'arrow')[place % 2]} HTTP/1.1\r\n"
        f"Host: localhost\r\nAccept: */*\r\n\r\n".encode()
        for place, query in enumerate(picked.tolist())
    ]


def told(answered: Answered) -> dict[str, Figure]:
    """The broker's figures. Raises RuntimeError where a request was refused or not answered."""
    if answered.refused or answered.unanswered:
        raise RuntimeError(f"{answered.refused} requests were refused, {answered.unanswered} not answered")
    forms = ("json", "arrow")
    return {
        "per_s": answered.per_s,
        "ms.p50": answered.ms(50),
        "ms.p99": answered.ms(99),
        "ms.max": answered.ms(100),
        **{f"ms.p99.{form}": _p99(answered.delay_s[place::2]) for place, form in enumerate(forms)},
        "asking_late_ms": answered.late_s * 1e3,
    }


def _p99(delay_s: npt.NDArray[np.float64]) -> float:
    return float(np.percentile(delay_s, 99)) * 1e3


def tell(what: str, answered: Answered) -> None:
    """On standard error."""
    delays = f"p50 {answered.ms(50):.2f} ms, p99 {answered.ms(99):.2f} ms"
    print(f"{what}: {answered.per_s:,.0f} answers/s, {delays}", file=sys.stderr)


def sizes(client: httpx.Client, handles: list[str]) -> dict[str, Figure]:
    """Rows of an answer, of some of the queries."""
    some = handles[: 10 * COMPARED]
    rows = [len(client.get(f"/queries/{handle}/snapshot").json()["rows"]) for handle in some]
    return {"rows.mean": float(np.mean(rows)), "rows.max": max(rows)}


def peers(
    sample: bytes,
    texts: list[str],
    picked: npt.NDArray[np.int64],
    per_s: float,
    rng: np.random.Generator,
) -> dict[str, Figure]:
    """The bare server and DuckDB, asked for as much."""
    figures: dict[str, Figure] = {}
    (port,) = free_ports(1)
    with bare(port, sample):
        paths = ["constant"] * len(picked)
        answered = ask(port, Load.steady(_plain(paths), per_s, rng), CONNECTIONS)
        tell("bare server", answered)
        figures |= {"bare_ms.p50": answered.ms(50), "bare_ms.p99": answered.ms(99)}
    window = columns(0, 20_000 * WINDOW_S)
    selects = [sql.replace(f" [RANGE {WINDOW_S} SECONDS]", "") for sql in texts]
    (port,) = free_ports(1)
    with duckdb_handler(port, window, selects):
        paths = [
            f"select/{query}?form={('json', 'arrow')[place % 2]}"
            for place, query in enumerate(picked.tolist())
        ]
        answered = ask(port, Load.steady(_plain(paths), per_s, rng), CONNECTIONS)
        tell("DuckDB", answered)
        figures |= {"duckdb_per_s": answered.per_s, "duckdb_ms.p99": answered.ms(99)}
    return figures


def _plain(paths: list[str]) -> list[bytes]:
    return [f"GET /{path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n".encode() for path in paths]


def columns(first: int, count: int, made_ms: npt.NDArray[np.int64] | None = None) -> pa.Table:
    """Records as a table."""
    found = records(first, count)
    stamps = np.arange(count) // 20 if made_ms is None else made_ms
    return pa.table(
        {
            "id": found["id"],
            "instrument": found["instrument"].astype(np.int32),
            "price": found["price"] / 100,
            "size": found["size"].astype(np.int32),
            "venue": pa.array(np.array(VENUES)[found["venue"]]),
            "ts": pa.array(stamps, pa.timestamp("ms")),
        }
    )


def compare(client: httpx.Client, handles: list[str], texts: list[str], fed: Fed) -> None:
    """Some answers with numpy's, once every record has entered. Raises RuntimeError."""
    deadline_s = time.monotonic() + DEADLINE_S
    while read(client) < len(fed.made_ms):
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{read(client)} of {len(fed.made_ms)} records were read")
        time.sleep(0.05)
    found = records(0, len(fed.made_ms))
    for place in range(0, len(texts), max(1, len(texts) // COMPARED)):
        answer = client.get(f"/queries/{handles[place]}/snapshot").raise_for_status().json()
        now_ms = answer["now_ms"]
        inside = (fed.made_ms >= now_ms - 1_000 * WINDOW_S) & (fed.made_ms <= now_ms)
        expected = _expected(texts[place], {name: column[inside] for name, column in found.items()})
        rows = sorted([row[0], row[1]] for row in answer["rows"])
        if rows != expected:
            raise RuntimeError(f"{texts[place]}: {len(rows)} rows, numpy {len(expected)}, or not the same")


def _expected(sql: str, found: Mapping[str, npt.NDArray[np.int64]]) -> list[list[str | int | float]]:
    """The first two columns of an answer."""
    words = sql.split()
    if "GROUP" in words:
        one = int(words[words.index("BETWEEN") + 1])
        mine = found["venue"][(found["instrument"] >= one) & (found["instrument"] <= one + 9)]
        counts = np.bincount(mine, minlength=len(VENUES)).tolist()
        return [[venue, count] for venue, count in zip(VENUES, counts, strict=True) if count]
    mine = found["instrument"] == int(words[words.index("instrument") + 2])
    if "AND" in words:
        mine &= found["price"] > 5_000
    return [
        [i, p / 100] for i, p in zip(found["id"][mine].tolist(), found["price"][mine].tolist(), strict=True)
    ]


def _plot(answered: Answered) -> Plot:
    """The delay below which a share of the requests stays, by nines."""
    nines = np.linspace(0.0, 3.0, 31)
    delays = [answered.ms(100 * (1 - 10**-nine)) for nine in nines.tolist()]
    return Plot(
        "share of the answers: 1 is 90%, 2 is 99%, 3 is 99.9%",
        "ms from due to whole answer",
        [Series(f"{answered.per_s:,.0f} answers/s", nines.tolist(), delays)],
    )
