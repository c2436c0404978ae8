"""Tables: versions come and go, and every answer is that of a plain dictionary of the latest ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.language.query import Scan
from engine.model.batch import Batch, versions
from engine.model.limits import Limits
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import CreateSource, Heartbeat, Position, Records, Register, Registration, Step
from engine.model.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from engine.sources.source_view import sources_at
from engine.windows.clauses import UNBOUNDED
from storage.store import Store
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState
from tests.strategies import batch_of, examples
from tureen.errors import InstantOutOfRange, StepOutOfOrder

NAME = SourceName("t")
TABLE = Stream(
    NAME,
    Schema((Field("v", DOUBLE), Field("k", STRING), Field("n", BIGINT), Field("ts", TIMESTAMP))),
    "t",
    "ts",
    idle_timeout_ms=1_000,
    retain_ms=20,
    key=("k", "n"),
)
MODES = ("none", "lazy", "eager")
TEXTS = {
    "rows": "SELECT k, n, v FROM t",
    "some": "SELECT k, n, v FROM t WHERE v > 1.5",
    "none": "SELECT k FROM t WHERE v IS NULL AND n = 1",
    "sum": "SELECT COUNT(*), SUM(v), MIN(k) FROM t",
}
SMALL = Limits(superseded_rows_max=2)

Version = tuple[int, int, int, tuple[str, int], float | None]
"""timestamp, partition, offset, key, v; v is None where the row is taken away."""


@dataclass
class Model:
    """What came, in a plain list."""

    seen: list[Version]

    def at(self, instant_ms: int) -> list[Version]:
        """The table's rows, in order."""
        latest: dict[tuple[str, int], Version] = {}
        for version in sorted(self.seen):
            if version[0] <= instant_ms:
                latest[version[3]] = version
        return sorted(version for version in latest.values() if version[4] is not None)


def table_batch(rows: Sequence[Version]) -> Batch:
    """A step's rows; a deletion has no columns but its key's."""
    plain = [(p, offset, ts, (v, *key)) for ts, p, offset, key, v in rows]
    deleted = np.array([row[4] is None for row in rows], np.bool_)
    return versions(TABLE, batch_of(TABLE.schema, plain), deleted)


def step(
    engine: Engine, body: Records | Heartbeat | CreateSource | Register, clock_ms: int
) -> tuple[int, ...]:
    """Apply one step; returns the places of late rows."""
    last = engine.position
    engine.enqueue(Step(Position(last.epoch, last.sequence + 1), clock_ms, body))
    (result,) = engine.run()
    assert not result.failed
    assert not result.rejected
    return result.late


def engine_with(texts: dict[str, str], table: Stream = TABLE, limits: Limits = SMALL) -> Engine:
    engine = small_engine(limits)
    step(engine, CreateSource(table, "CREATE TABLE t ..."), 0)
    registrations = tuple(
        Registration(f"{name}-{mode}", sql, options={"maintenance": mode})
        for name, sql in texts.items()
        for mode in MODES
    )
    step(engine, Register(registrations), 0)
    return engine


def put(engine: Engine, rows: Sequence[Version], clock_ms: int = 1_000_000) -> tuple[int, ...]:
    return step(engine, Records(NAME, table_batch(rows), {}), clock_ms)


def answer(engine: Engine, name: str, at_ms: int | None = None) -> list[tuple[object, ...]]:
    """The rows, the same in every mode."""
    found = [engine.view().snapshot(f"{name}-{mode}", at=at_ms) for mode in MODES]
    rows = [[tuple(row.values()) for row in one.table.to_pylist()] for one in found]
    assert rows[0] == rows[1] == rows[2]
    assert len({(one.now_ms, one.complete_from_ms) for one in found}) == 1
    return rows[0]


def now_of(engine: Engine) -> int | None:
    return engine.view().sources()[0].now_ms


ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(-3, 6),
        st.tuples(st.sampled_from("ab"), st.integers(1, 2)),
        st.sampled_from([None, 0.1, 0.2, 1.1, 2.7, 1e16]),
    ),
    min_size=2,
    max_size=8,
)


@settings(max_examples=examples(15))
@given(st.lists(ROWS, min_size=1, max_size=10), st.integers(0, 1_000_000))
def test_every_answer_is_that_of_a_dictionary_of_versions(steps, seed):
    whole, cut, store, model = engine_with(TEXTS), engine_with(TEXTS), MemoryState(), Model([])
    rng = np.random.default_rng(seed)
    clock_ms, offsets = 1_000, [0, 0]
    for drawn in steps:
        clock_ms += 7
        rows: list[Version] = []
        for partition, ahead, key, v in sorted(drawn, key=lambda row: row[0]):
            rows.append((clock_ms + ahead, partition, offsets[partition], key, v))
            offsets[partition] += 1
        late = put(whole, rows, clock_ms)
        model.seen += [row for place, row in enumerate(rows) if place not in late]
        split = int(rng.integers(len(rows)))
        for first, last in ((0, split), (split, len(rows))):
            rest = frozenset(row[1] for row in rows[last:])
            step(cut, Records(NAME, table_batch(rows[first:last]), {}, rest), clock_ms)
        if rng.random() < 0.3:
            cut.save(store)
            if rng.random() < 0.7:
                cut = small_restored(store, SMALL)
        whole._check()
        cut._check()
        now_ms = now_of(whole)
        assert now_ms == now_of(cut)
        if now_ms is None:
            continue
        for at_ms in (None, now_ms - int(rng.integers(30))):
            first_ms = refused_before(whole, at_ms)
            assert first_ms == refused_before(cut, at_ms)
            if first_ms is not None:
                assert at_ms is not None
                assert at_ms < first_ms <= now_ms - TABLE.retain_ms
                continue
            expected = model.at(now_ms if at_ms is None else at_ms)
            rows_then = [(*row[3], row[4]) for row in expected]
            assert answer(whole, "rows", at_ms) == rows_then
            assert answer(cut, "rows", at_ms) == rows_then
            some = [row for row in rows_then if row[2] is not None and row[2] > 1.5]
            assert answer(whole, "some", at_ms) == some
            assert answer(cut, "some", at_ms) == some
            assert answer(whole, "sum", at_ms)[0][0] == len(expected)
            assert repr(answer(cut, "sum", at_ms)) == repr(answer(whole, "sum", at_ms))


def refused_before(engine: Engine, at_ms: int | None) -> int | None:
    """The first instant with an answer, where that lies behind this one."""
    try:
        engine.view().snapshot("rows-lazy", at=at_ms)
    except InstantOutOfRange as refused:
        return refused.earliest_ms
    return None


def updates(count: int, keys: int, *, first: int = 0) -> list[Version]:
    """One a millisecond, key after key."""
    return [(1_000 + n, 0, n, (f"k{n % keys}", 0), float(n)) for n in range(first, first + count)]


def test_a_table_stays_as_large_as_its_keys_and_views_keep_what_they_saw():
    engine = engine_with(TEXTS)
    put(engine, updates(30, 3))
    before, ordinals = engine.view(), set()
    for first in range(30, 3_030, 30):
        put(engine, updates(30, 3, first=first))
        stem = engine._sources[NAME].rows
        assert len(stem) <= 2 * (TABLE.retain_ms + 3) + 30
        assert engine.view().sources()[0].rows == 3
        ordinals.add(stem.base)
    assert len(ordinals) > 20, "rows never moved"
    assert answer(engine, "rows") == [(f"k{n % 3}", 0, float(n)) for n in (3_026, 3_027, 3_028)]
    assert answer(engine, "rows", 1_000 + 3_015) == [
        (f"k{n % 3}", 0, float(n)) for n in (3_013, 3_014, 3_015)
    ]
    for mode in MODES:
        kept = before.snapshot(f"rows-{mode}").table.column("v").to_pylist()
        assert kept == [26.0, 27.0, 28.0]
    engine._check()


def test_a_current_row_stays_however_old_and_comes_back_from_a_store(tmp_path):
    engine = engine_with(TEXTS)
    old: Version = (1_000, 0, 0, ("old", 7), 0.5)
    with Store(tmp_path) as store:
        put(engine, [old])
        for first in range(1, 401, 40):
            put(engine, updates(40, 2, first=first))
            engine.save(store)
        rows = answer(engine, "rows")
        assert rows[0] == ("old", 7, 0.5)
        assert len(rows) == 3
        put(engine, [(1_500, 0, 500, ("old", 7), None), (1_600, 0, 501, ("k1", 0), 9.0)])
        assert [row[0] for row in answer(engine, "rows")] == ["k1", "k0"]
        engine.save(store)
        again = small_restored(store, SMALL)
        again._check()
        assert again.catalogue[NAME] == TABLE
        for one in (again, engine):
            put(one, [(1_700, 0, 600, ("new", 0), 2.0), (1_701, 0, 601, ("k0", 0), None)])
            put(one, [(1_800, 0, 602, ("old", 7), 3.0), (1_801, 0, 603, ("x", 0), 1.0)])
            assert answer(one, "rows") == [("k1", 0, 9.0), ("new", 0, 2.0), ("old", 7, 3.0)]


def test_what_was_taken_away_is_not_found_and_may_come_again():
    engine = engine_with(TEXTS)
    put(engine, [(10, 0, 0, ("a", 1), None), (11, 0, 1, ("a", 1), 2.0), (12, 0, 2, ("a", 1), None)])
    put(engine, [(13, 0, 3, ("a", 1), None), (14, 0, 4, ("a", 1), 3.0), (15, 0, 5, ("b", 1), 1.0)])
    found = {at_ms: [row[2] for row in answer(engine, "rows", at_ms)] for at_ms in range(10, 15)}
    assert found == {10: [], 11: [2.0], 12: [], 13: [], 14: [3.0]}
    assert answer(engine, "none") == []
    engine._check()


def test_a_history_scan_gives_every_version_that_is_retained():
    engine = engine_with({}, replace(TABLE, retain_ms=1_000_000))
    rows: list[Version] = [
        (10, 0, 0, ("a", 1), 1.0),
        (11, 0, 1, ("b", 1), 2.0),
        (12, 0, 2, ("a", 1), None),
        (13, 0, 3, ("b", 1), 3.0),
        (14, 0, 4, ("c", 1), 4.0),
    ]
    put(engine, rows)
    view = engine._sources[NAME].view()
    for at_ms in range(9, 14):
        at = sources_at({NAME: view}, at_ms)[NAME]
        seen = at.relation(Scan(NAME, UNBOUNDED, history=True)).relation
        columns = [column.to_arrow().to_pylist() for column in seen.columns]
        assert len(columns) == len(TABLE.schema) + 1
        expected = [row for row in rows if row[0] <= at_ms]
        assert columns[1] == [key for _, _, _, (key, _), _ in expected]
        assert columns[0] == [v for *_, v in expected]
        assert columns[-1] == [v is None for *_, v in expected]


JOINS = {
    "now": "SELECT s.k, x, v FROM s [RANGE 20 MILLISECONDS] JOIN t ON s.k = t.k",
    "left": "SELECT s.k, x, v FROM s [RANGE 20 MILLISECONDS] LEFT JOIN t ON s.k = t.k AND v > 3",
    "sum": "SELECT COUNT(*), SUM(v) FROM s [RANGE 20 MILLISECONDS] JOIN t ON s.k = t.k",
    "back": "SELECT s.k, x, v FROM s [RANGE 20 MILLISECONDS] JOIN n ON s.k = n.k",
    "then": "SELECT s.k, x, v FROM s [RANGE 5 MILLISECONDS] JOIN n ON s.k = n.k",
}


def test_joins_with_tables_stay_right_while_rows_get_new_ordinals():
    """``t`` as it is and ``n`` as it was at each row's instant, against dictionaries."""
    engine, rng = small_engine(SMALL), random.Random(5)
    with_ = "ts TIMESTAMP) WITH (timestamp = 'ts')"
    engine.create(f"CREATE STREAM s (k STRING, x BIGINT, {with_}", 10**6)
    for name, kind in (("t", ""), ("n", "NON RETROACTIVE")):
        engine.create(
            f"CREATE TABLE {name} (k STRING PRIMARY KEY, v BIGINT, {with_} RETAIN 9 MILLISECONDS {kind}"
        )
    step(
        engine,
        Register(
            tuple(
                Registration(f"{name}-{mode}", sql, options={"maintenance": mode})
                for name, sql in JOINS.items()
                for mode in MODES
            )
        ),
        10**6,
    )
    came: dict[str, list[tuple[int, str, int | None]]] = {"s": [], "t": [], "n": []}

    def latest(name: str, at_ms: int) -> dict[str, int]:
        known = {key: v for ts, key, v in came[name] if ts <= at_ms}
        return {key: v for key, v in known.items() if v is not None}

    bases = set()
    for beat in range(80):
        for name, values in (("t", [None, 1, 2, 5]), ("n", [None, 3, 4]), ("s", [beat])):
            stamps = [1_000 + 3 * beat + place for place in range(rng.randint(1, 3))]
            rows = [(ts, rng.choice("abc"), rng.choice(values)) for ts in stamps]
            first = len(came[name])
            came[name] += rows
            stream = engine.catalogue[name]
            assert isinstance(stream, Stream)
            plain = [(0, first + place, ts, (key, v)) for place, (ts, key, v) in enumerate(rows)]
            batch = batch_of(stream.schema, plain)
            if stream.is_table:
                batch = versions(stream, batch, np.array([v is None for *_, v in rows]))
            engine.ingest(name, batch, 10**6)
        engine._check()
        bases.add(engine._sources["t"].rows.base)
        now = {name: source.clock.now_ms or 0 for name, source in engine._sources.items()}
        known = latest("t", min(now["s"], now["t"]))
        window = [row for row in came["s"] if now["s"] - 20 <= row[0] <= now["s"]]
        assert answer(engine, "now") == [(k, x, known[k]) for _, k, x in window if k in known]
        found = [(k, x, known.get(k, 0)) for _, k, x in window]
        assert answer(engine, "left") == [(k, x, v if v > 3 else None) for k, x, v in found]
        sums = [known[k] for _, k, _ in window if k in known]
        assert answer(engine, "sum") == [(len(sums), sum(sums) if sums else None)]
        then = [(k, x, latest("n", min(ts, now["n"])).get(k)) for ts, k, x in window if ts >= now["s"] - 5]
        assert answer(engine, "then") == [row for row in then if row[2] is not None]
    assert len(bases) > 10, "rows never moved"
    for mode in MODES:  # rows that are older than the versions that are kept
        found_now = engine.view().snapshot(f"back-{mode}")
        assert found_now.complete_from_ms == engine._sources["n"].retained_from_ms
        assert found_now.now_ms is not None
        with pytest.raises(InstantOutOfRange, match="no answer"):
            engine.view().snapshot(f"back-{mode}", at=found_now.now_ms)


def test_a_version_that_takes_the_key_away_is_the_latest_of_its_instant():
    engine = small_engine()
    engine.create(
        "CREATE TABLE rate (k BIGINT PRIMARY KEY, r BIGINT, since TIMESTAMP NOT NULL) "
        "WITH (timestamp = 'since') NON RETROACTIVE"
    )
    engine.create("CREATE STREAM uses (k BIGINT, at TIMESTAMP NOT NULL) WITH (timestamp = 'at')")
    engine.register("left", "SELECT u.at, t.r FROM uses u LEFT JOIN rate t ON u.k = t.k")
    engine.register("anti", "SELECT u.at FROM uses u ANTI JOIN rate t ON u.k = t.k")
    rate, uses = engine.catalogue["rate"], engine.catalogue["uses"]
    assert isinstance(rate, Stream)
    assert isinstance(uses, Stream)
    changes = [
        (0, 0, 100, (1, 1, 100)),
        (0, 1, 160, (1, None, None)),
        (0, 2, 220, (1, 2, 220)),
        (0, 3, 400, (2, 9, 400)),
    ]
    deleted = np.array([False, True, False, False])
    engine.ingest("rate", versions(rate, batch_of(rate.schema, changes), deleted), 1_000)
    instants = [100, 159, 160, 219, 220, 300]
    rows = [(0, offset, at, (1, at)) for offset, at in enumerate(instants)]
    engine.ingest("uses", batch_of(uses.schema, rows), 1_000)
    known = {100: 1, 159: 1, 160: None, 219: None, 220: 2}
    seen = engine.view().snapshot("left").table.to_pydict()
    assert dict(zip((ms(at) for at in seen["at"]), seen["r"], strict=True)) == known
    gone = engine.view().snapshot("anti").table.to_pydict()
    assert [ms(at) for at in gone["at"]] == [160, 219]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the row whose key is compared decides, not when its partner comes, in whatever order they are joined
        ("FROM s JOIN u ON s.k = u.k JOIN rate t ON t.k = s.k", {(100, 300): 1, (250, 300): 2}),
        ("FROM u JOIN s ON s.k = u.k JOIN rate t ON t.k = s.k", {(100, 300): 1, (250, 300): 2}),
        ("FROM s JOIN rate t ON t.k = s.k JOIN u ON s.k = u.k", {(100, 300): 1, (250, 300): 2}),
        ("FROM s JOIN u ON s.k = u.k JOIN rate t ON t.k = u.k", {(100, 300): 3, (250, 300): 3}),
        # the later one of two
        ("FROM s JOIN u ON s.k = u.k JOIN rate t ON t.k = s.k + u.k - 1", {(100, 300): 3, (250, 300): 3}),
        ("FROM u JOIN s ON s.k = u.k JOIN rate t ON t.k = u.k + s.k - 1", {(100, 300): 3, (250, 300): 3}),
        # a condition on what was found has no say in it
        (
            "FROM s JOIN u ON s.k = u.k LEFT JOIN rate t ON t.k = s.k AND t.r + 1 < u.k + 2",
            {(100, 300): 1, (250, 300): None},
        ),
        (
            "FROM s FULL JOIN u ON s.k = u.k AND s.at > 200 JOIN rate t ON t.k = COALESCE(s.k, u.k)",
            {(100, None): 1, (250, 300): 3},
        ),
    ],
)
def test_the_version_is_that_of_the_row_whose_column_is_compared(text, expected):
    engine = small_engine()
    engine.create(
        "CREATE TABLE rate (k BIGINT PRIMARY KEY, r BIGINT, since TIMESTAMP NOT NULL) "
        "WITH (timestamp = 'since') NON RETROACTIVE"
    )
    for name in "su":
        engine.create(f"CREATE STREAM {name} (k BIGINT, at TIMESTAMP NOT NULL) WITH (timestamp = 'at')")
    text = text.replace("s.at > 200", "EPOCH_MS(s.at) > 200")
    engine.register("q", f"SELECT s.at AS a, u.at AS b, t.r {text}")
    engine.follow("q")
    rate, s, u = (engine.catalogue[name] for name in ("rate", "s", "u"))
    assert isinstance(rate, Stream)
    assert isinstance(s, Stream)
    assert isinstance(u, Stream)
    changes = [(0, n, since, (1, n + 1, since)) for n, since in enumerate([50, 200, 260, 600])]
    engine.ingest("rate", versions(rate, batch_of(rate.schema, changes), np.zeros(4, np.bool_)), 1_000)
    engine.ingest(
        "s", batch_of(s.schema, [(0, n, at, (1, at)) for n, at in enumerate([100, 250, 700])]), 1_000
    )
    engine.ingest("u", batch_of(u.schema, [(0, n, at, (1, at)) for n, at in enumerate([300, 500])]), 1_000)

    def found(at_ms: int | None) -> dict[tuple[int | None, int | None], int | None]:
        rows = engine.view().snapshot("q", at=at_ms).table.to_pylist()
        instants = (tuple(None if row[name] is None else ms(row[name]) for name in "ab") for row in rows)
        return dict(zip(instants, (row["r"] for row in rows), strict=True))

    assert found(None) == found(400) == expected


def ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000)


def test_a_batch_without_the_mark_of_deletions_is_no_batch_of_a_table():
    engine = engine_with({})
    with pytest.raises(StepOutOfOrder, match="schema"):
        step(engine, Records(NAME, batch_of(TABLE.schema, [(0, 0, 5, (1.0, "a", 1))]), {}), 10)


def test_a_query_that_comes_counts_no_error_of_versions_that_only_wait_to_go() -> None:
    """Superseded versions stay until most have gone; k is a number in none of them."""
    engine = engine_with({})
    put(engine, [(ts, 0, ts, ("k", 1), 1.0) for ts in (1, 2, 3, 100, 101, 102)])
    (info,) = engine.view().sources()
    assert (info.now_ms, info.retained_from_ms) == (101, 81)
    assert engine._sources[NAME].rows.end == 5
    step(engine, Register((Registration("q", "SELECT v FROM t WHERE CAST(k AS INTEGER) = 0"),)), 1_000_000)
    assert engine.view().query("q").predicate_errors == 3  # the row at 81, which came at 3, and two after it
    put(engine, [(200, 0, 200, ("k", 1), 1.0)])
    assert engine.view().query("q").predicate_errors == 4


def test_versions_without_any_string_are_let_go_of() -> None:
    table = replace(
        TABLE, schema=Schema((Field("s", STRING), Field("n", BIGINT), Field("ts", TIMESTAMP))), key=("n",)
    )
    engine = engine_with({"rows": "SELECT s, n FROM t"}, table)
    for first in range(1, 200, 20):
        plain = [(0, ts, ts, (None, ts % 2)) for ts in range(first, first + 20)]
        deleted = np.zeros(len(plain), np.bool_)
        step(engine, Records(NAME, versions(table, batch_of(table.schema, plain), deleted), {}), 1_000_000)
    assert engine._sources[NAME].rows.base > 0
    assert answer(engine, "rows") == [(None, 0), (None, 1)]
