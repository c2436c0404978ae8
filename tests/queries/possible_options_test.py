"""Options that a query cannot have are refused: when it is registered, changed, or given another text."""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.model.step import Alter, Body, Position, Register, Registration, Step
from tests.capacities import small_engine
from tureen.errors import OptionRefused

CREATES = (
    "CREATE STREAM s (k BIGINT, v DOUBLE, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')",
    "CREATE STREAM u (k BIGINT, n BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')",
    "CREATE TABLE t (k BIGINT PRIMARY KEY, w STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')",
    """CREATE TABLE n (k BIGINT PRIMARY KEY, w STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')
    NON RETROACTIVE""",
)
STRICT = (
    ("SELECT k FROM s [ROWS 5]", "the window 'last 5 rows' of s"),
    ("SELECT k FROM s [PARTITION BY k ROWS 2]", "the window 'last 2 rows of each k' of s"),
    ("SELECT k, w FROM t", "the table t"),
    ("SELECT COUNT(*) AS c FROM s [ROWS 5]", "the window 'last 5 rows' of s"),
    (
        "SELECT s.k FROM s [RANGE 1 SECOND] JOIN u [ROWS 3] ON s.k = u.k",
        "the window 'last 3 rows' of u",
    ),
    ("SELECT s.k, w FROM s [RANGE 1 SECOND] JOIN t ON s.k = t.k", "the table t"),
    (
        "SELECT s.k, n FROM s [RANGE 1 SECOND] LEFT JOIN u [RANGE 1 SECOND] ON s.k = u.k",
        "the operator 'left join u on k = u.k'",
    ),
    (
        "SELECT k FROM s [RANGE 1 SECOND] WHERE k NOT IN (SELECT k FROM u [RANGE 1 SECOND])",
        "the operator 'anti join on k, NULL is unknown'",
    ),
    (
        "SELECT k FROM s [RANGE 1 SECOND] EXCEPT ALL SELECT k FROM u [RANGE 1 SECOND]",
        "the operator 'except all'",
    ),
    (
        """SELECT k FROM u [RANGE 9 SECONDS] WHERE k IN
        (SELECT k FROM s [RANGE 1 SECOND] EXCEPT SELECT k FROM u [RANGE 1 SECOND])""",
        "the operator 'except'",
    ),
    ("SELECT k, v FROM s [RANGE 1 SECOND] ORDER BY v LIMIT 2", "the operator 'limit 2 rows'"),
    (
        "SELECT s.k, n FROM s [RANGE 1 SECOND] ASOF JOIN u [RANGE 1 SECOND] ON s.k = u.k AND s.ts >= u.ts",
        "the operator 'as of inner join u on k = u.k and the latest of ts >= u.ts'",
    ),
)
KNOWN_EXITS = (
    "SELECT k FROM s",
    "SELECT k FROM s [RANGE 1 SECOND] WHERE v > 0",
    "SELECT DISTINCT k FROM s [RANGE 1 SECOND]",
    "SELECT k, COUNT(*) AS c FROM s [RANGE 1 SECOND] GROUP BY k",
    "SELECT s.k, n FROM s [RANGE 1 SECOND] JOIN u [RANGE 2 SECONDS] ON s.k = u.k",
    "SELECT k FROM s [RANGE 1 SECOND] INTERSECT SELECT k FROM u [RANGE 2 SECONDS]",
    "SELECT k FROM s [RANGE 1 SECOND] UNION ALL SELECT k FROM u",
    "SELECT k, window_end FROM TUMBLE(s, INTERVAL '1' SECOND)",
    "SELECT s.k, w FROM s [RANGE 1 SECOND] JOIN n ON s.k = n.k",
)


@pytest.fixture
def engine() -> Engine:
    made = small_engine()
    for create in CREATES:
        made.create(create)
    return made


def refusal(engine: Engine, body: Body) -> Exception | None:
    """The error that a step about one query gives; None: it is carried out."""
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, body))
    (result,) = engine.run()
    return next(iter(result.failed.values()), None)


def register(engine: Engine, text: str, **options: str) -> Exception | None:
    return refusal(engine, Register((Registration("q", text, options=options),)))


@pytest.mark.parametrize(("text", "operator"), STRICT)
def test_direct_is_refused_where_exits_are_not_known(engine: Engine, text: str, operator: str) -> None:
    refused = register(engine, text, strategy="direct")
    assert isinstance(refused, OptionRefused)
    assert operator in refused.message
    assert refused.hint == "nt, upa or auto"
    assert "q" not in engine.view().standing
    for strategy in ("nt", "upa", "auto", "UPA"):
        assert register(engine, text, strategy=strategy) is None


@pytest.mark.parametrize("text", KNOWN_EXITS)
def test_direct_is_taken_where_they_are(engine: Engine, text: str) -> None:
    assert register(engine, text, strategy="direct") is None


def test_a_change_that_is_refused_leaves_the_options_as_they_were(engine: Engine) -> None:
    text = "SELECT k FROM s [ROWS 5]"
    assert register(engine, text, strategy="upa") is None
    assert isinstance(register(engine, text, strategy="direct"), OptionRefused)
    assert engine.view().query("q").options == {"strategy": "upa"}


def test_another_text_that_the_options_do_not_fit_is_refused(engine: Engine) -> None:
    text, options = "SELECT k FROM s [RANGE 1 SECOND]", {"strategy": "direct", "partitions": "100"}
    assert register(engine, text, **options) is None
    for other, why in (
        ("SELECT k FROM s [ROWS 5]", "last 5 rows"),
        ("SELECT k FROM s [RANGE 50 MILLISECONDS]", "51 ms"),
    ):
        refused = refusal(engine, Alter((Registration("q", other, options=options),)))
        assert isinstance(refused, OptionRefused)
        assert why in refused.message
        assert engine.view().query("q").sql == text
    other = "SELECT k FROM s [RANGE 2 SECONDS]"
    assert refusal(engine, Alter((Registration("q", other, options=options),))) is None


@pytest.mark.parametrize(
    ("partitions", "window", "allowed"),
    [
        ("1", "[NOW]", True),
        ("2", "[NOW]", False),
        ("11", "[RANGE 10 MILLISECONDS]", True),
        ("12", "[RANGE 10 MILLISECONDS]", False),
        ("65536", "[RANGE 10 DAYS]", True),
        ("65537", "[RANGE 10 DAYS]", False),
        ("65536", "", True),
        ("65536", "[ROWS 3]", True),
        ("auto", "[NOW]", True),
        ("AUTO", "[NOW]", True),
        *((odd, "", False) for odd in ("0", "-1", "1.5", "1e3", "", " 7", "\u0663", "true", "9" * 5_000)),
    ],
)
def test_partitions_that_a_window_has_no_room_for(
    engine: Engine, partitions: str, window: str, allowed: bool
) -> None:
    for strategy in ("auto", "nt", "upa"):
        refused = register(engine, f"SELECT k FROM s {window}", strategy=strategy, partitions=partitions)
        assert isinstance(refused, OptionRefused) is not allowed
        assert (refused is None) is allowed


@pytest.mark.parametrize("option", ["strategy", "structure"])
@pytest.mark.parametrize("value", ["", "eager", "none", "nt ", "1"])
def test_unknown_strategies_and_structures_are_refused(engine: Engine, option: str, value: str) -> None:
    refused = register(engine, "SELECT k FROM s", **{option: value})
    assert isinstance(refused, OptionRefused)
    assert "auto" in (refused.hint or "")
