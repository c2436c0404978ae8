"""What the client promises without a broker."""

from __future__ import annotations

import doctest
import importlib
import logging
import subprocess
import sys

import httpx
import pytest

import tureen
from tureen import errors
from tureen.facts import error_from
from tureen.snapshot import Reply, Snapshot
from tureen.topic_records import registration_of

MODULES = [
    "tureen",
    "tureen.async_client",
    "tureen.builder",
    "tureen.carets",
    "tureen.changes",
    "tureen.changes_wire",
    "tureen.client",
    "tureen.columns",
    "tureen.console",
    "tureen.dbapi",
    "tureen.dbapi_errors",
    "tureen.facts",
    "tureen.folding",
    "tureen.literals",
    "tureen.protocol",
    "tureen.results",
    "tureen.snapshot",
    "tureen.sparkline",
    "tureen.statements",
    "tureen.texts",
    "tureen.topic_client",
    "tureen.topic_feed",
    "tureen.transport",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_importing_tureen_imports_nothing_heavy() -> None:
    program = (
        "import sys, tureen; tureen.query_id('x'); tureen.TureenError;"
        "print([m for m in ('httpx', 'pyarrow', 'confluent_kafka', 'rich', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_client_needs_none_of_the_server() -> None:
    program = (
        "import sys, tureen; tureen.connect('http://127.0.0.1:1').close();"
        "import tureen.topic_client, tureen.cli; packages = {m.split('.')[0] for m in sys.modules};"
        "print(sorted(packages & {'engine', 'broker', 'topics', 'storage', 'numba'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_public_names_are_there() -> None:
    assert all(getattr(tureen, name) is not None for name in tureen.__all__)
    assert set(tureen.__all__) <= set(dir(tureen))
    with pytest.raises(AttributeError):
        _ = tureen.nothing


def kinds(root: type[errors.TureenError]) -> list[type[errors.TureenError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in kinds(child))]


@pytest.mark.parametrize("kind", [k for k in kinds(errors.TureenError) if k.__module__ == "tureen.errors"])
def test_an_error_survives_the_wire(kind: type[errors.TureenError]) -> None:
    sent = {"code": kind.code, "message": "m", "line": 2, "column": 3, "hint": "h"}
    received = error_from(sent)
    assert type(received) is kind
    assert {name: received.as_dict()[name] for name in sent} == sent
    assert str(received) == "m (line 2, column 3)\nhint: h"


def test_facts_survive_the_wire() -> None:
    sent = errors.InstantOutOfRange(7, None, 5)
    received = error_from(sent.as_dict())
    assert isinstance(received, errors.InstantOutOfRange)
    assert (received.at_ms, received.earliest_ms, received.latest_ms) == (7, None, 5)
    assert received.as_dict() == sent.as_dict()


def test_a_code_of_a_newer_broker_is_kept() -> None:
    received = error_from({"code": "from_the_future", "message": "m"})
    assert type(received) is errors.TureenError
    assert received.code == "from_the_future"


@pytest.mark.parametrize(
    ("at_ms", "earliest_ms", "latest_ms", "message"),
    [
        (2_000, None, 1_001, "1970-01-01T00:00:02.000Z is after NOW, which is 1970-01-01T00:00:01.001Z"),
        (2_000, 3_000, 9_000, "02.000Z is before 1970-01-01T00:00:03.000Z, the first with an answer"),
        (2_000, None, 9_000, "there is no answer for the instant 1970-01-01T00:00:02.000Z"),
        (10**18, None, 9_000, "the instant 1000000000000000000 ms is after NOW"),
        (-(10**18), 0, 9_000, "the instant -1000000000000000000 ms is before"),
    ],
)
def test_an_instant_that_cannot_be_answered_is_told_as_a_date(
    at_ms: int, earliest_ms: int | None, latest_ms: int, message: str
) -> None:
    error = errors.InstantOutOfRange(at_ms, earliest_ms, latest_ms)
    assert message in str(error)
    assert "None" not in str(error)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_with_what_to_do(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setitem(sys.modules, package, None)
    answer = Snapshot(pa.table({"v": [1]}), "1-1", 0)
    with pytest.raises(errors.PackageMissing, match=f"pip install {package}"):
        answer.to_pandas() if package == "pandas" else answer.to_polars()


def test_timestamps_of_rows_are_utc_without_a_zone() -> None:
    import pyarrow as pa

    answer = Snapshot(pa.table({"at": pa.array([1_000], pa.timestamp("ms"))}), "1-1", 1_000)
    assert answer.now is not None
    assert answer.rows()[0]["at"] == answer.now.replace(tzinfo=None)
    assert answer.to_pandas()["at"].dt.tz_localize("UTC")[0] == answer.now


def test_nobody_at_the_address() -> None:
    with (
        tureen.connect("http://127.0.0.1:1") as client,
        pytest.raises(errors.BrokerUnavailable, match="tureen serve"),
    ):
        client.register("SELECT 1")
    with pytest.raises(errors.BrokerUnavailable), tureen.connect("not an address") as client:
        client.queries()


def test_handles_are_hidden_from_the_log_of_http(caplog: pytest.LogCaptureFixture) -> None:
    importlib.import_module("tureen.exchange")
    with caplog.at_level(logging.INFO, logger="httpx"):
        logging.getLogger("httpx").info(
            "HTTP Request: %s %s", "GET", httpx.URL("http://h:1/queries/my-secret-handle/snapshot?at=1")
        )
    assert "my-secret-handle" not in caplog.text
    assert "/queries/***/snapshot?at=1" in caplog.text


def test_an_incomplete_answer_says_from_when_it_is_complete() -> None:
    import pyarrow as pa

    table = pa.table({"v": [1]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {
        "tureen-position": "1-9",
        "tureen-complete": "false",
        "tureen-complete-from-ms": "5",
        "tureen-approximation": '[{"kind":"shed","where":"s","origin":"dynamic","amount":7},{"more":3}]',
        "tureen-errors": "2",
    }
    answer = Snapshot.of(Reply(sink.getvalue().to_pybytes(), "arrow", headers))
    assert (answer.complete, answer.complete_from_ms, answer.approximate, answer.errors) == (
        False,
        5,
        True,
        2,
    )
    assert [str(tag) for tag in answer.approximation] == ["shed of s: 7 (dynamic)"]
    assert answer.now is None


def test_a_source_has_what_the_list_says_of_it() -> None:
    from tureen.facts import Source

    source = Source.of({"name": "s", "late": 1, "rejected": 2, "dead_letters": 3, "state": "RUNNING"})
    assert (source.name, source.late, source.rejected, source.dead_letters) == ("s", 1, 2, 3)
    assert Source.of({"name": "v", "kind": "view"}).dead_letters is None


def test_a_registration_that_nobody_can_read_has_no_text() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    for record in (b"", b"{", b"[]", b'{"sql": "SELECT 1", "options": ' + deep + b"}"):
        assert registration_of(record)["sql"] is None


def test_many_registrations_are_cut_into_bodies_by_number_and_size() -> None:
    from tureen.calls import BULK_CHARACTERS, BULK_QUERIES, bodies
    from tureen.transport import Publication

    many = [Publication(tureen.new_handle(), "s") for _ in range(2 * BULK_QUERIES + 1)]
    assert [len(part) for part in bodies(many)] == [BULK_QUERIES, BULK_QUERIES, 1]
    large = [Publication(tureen.new_handle(), "x" * (BULK_CHARACTERS // 2 - 100)) for _ in range(5)]
    assert [len(part) for part in bodies(large)] == [2, 2, 1]
    assert list(bodies([])) == []


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("CREATE STREAM Trades (v DOUBLE)", "trades"),
        ('create view if not exists "A ""b""" AS SELECT v FROM s', 'A "b"'),
        ("CREATE OR REPLACE VIEW late AS SELECT v FROM s", "late"),
        ("CREATE SUMMARY Hot ON trades (v) WITH GRANULARITY 1 HOUR AND COLLAPSE(2, 2)", "summary:hot"),
    ],
)
def test_by_topic_the_name_of_what_is_created_is_its_key(sql: str, key: str) -> None:
    from tureen.topic_records import source_key

    assert source_key(sql) == (key, key.removeprefix("summary:"))
    with pytest.raises(errors.SyntaxRefused):
        source_key(f"DROP {sql}")


def test_a_plan_shows_edges_of_steps_and_shared_predicates_only_if_verbose(capsys) -> None:
    from tureen import plans
    from tureen.commands import explain

    step = {
        "operator": "scan t",
        "details": ["where price > 5"],
        "pattern": "WKS",
        "estimated_rows": 3.0,
        "estimated_ns": 2e6,
        "actual_rows": None,
        "actual_ns": None,
    }
    tree = {
        "operator": "scan",
        "details": ["t", "where price > 5"],
        "pattern": "WKS",
        "reason": None,
        "state": {"queries": 3, "columns": 2, "rows": 0, "bytes": 0, "visited": 8},
        "inputs": [],
    }
    plan = {
        "query_id": None,
        "sources": ["t"],
        "maintenance": "lazy",
        "paused": False,
        "uses": [],
        "reason": "",
        "waits_for": [],
        "operator": "changes",
        "key": None,
        "emit": None,
        "steps": [step],
        "predicates": [{"source": "t", "predicate": "price > 5", "facts": {"cohort": "dense", "holders": 1}}],
        "modules": {},
        "views": [],
        "followed": False,
        "graph": tree,
        "tolerance": {},
        "weight": 1.0,
        "operator_rule": "",
        "as_from_now": [],
    }
    assert plans.rows(plan) == [("scan t", "where price > 5", 3, 2.0)]
    assert plans.rows(plan, verbose=True) == [("scan t", "where price > 5", "WKS", 3, 2.0)]
    assert plans.graph(plan) == [("scan", "t; where price > 5", "WKS", 3, 0, 0)]
    explain.show(plan)
    words = capsys.readouterr().out.split()
    assert (words.count("WKS"), words.count("cohort")) == (1, 0)
    explain.show(plan, verbose=True)
    words = capsys.readouterr().out.split()
    assert (words.count("WKS"), words.count("cohort")) == (2, 1)


def test_a_tree_of_operators_has_a_line_each_with_its_branches() -> None:
    from tureen import plans

    def tree(operator, *inputs, reason=None):
        state = {"queries": 1, "columns": 1, "rows": 2, "bytes": 3, "visited": 4}
        return {
            "operator": operator,
            "details": [],
            "pattern": "WK",
            "reason": reason,
            "state": state,
            "inputs": inputs,
        }

    joined = tree("join", tree("filter", tree("scan")), tree("recompute", reason="ASOF"))
    told = plans.graph({"graph": tree("project", joined)})
    assert [row[0] for row in told] == ["project", "└ join", "  ├ filter", "  │ └ scan", "  └ recompute"]
    assert told[-1][1] == "because of ASOF"


def test_ends_of_many_queries_are_counted_rather_than_listed(capsys) -> None:
    from tureen.answers import EndedQueries
    from tureen.commands import unregister

    unregister._show(EndedQueries(tuple(f"q{place}" for place in range(1_002)), (), ()), as_json=False)
    lines = capsys.readouterr().err.splitlines()
    assert (lines[0], len(lines)) == ("query q0 is gone", unregister.LISTED_MAX + 1)
    assert lines[-1] == "and 982 others; 1,002 queries are gone"


def test_modules_show_a_dash_for_what_they_cannot_say() -> None:
    from tureen import plans

    alike = {"visits": 2, "errors": 0}
    join = {"name": "join", "queries": 1, "tickets": None, "given": 5, "killed": -4, "cost": 2e6} | alike
    scan = {"name": "f", "queries": 2, "tickets": 1.5, "given": 9, "killed": 4, "cost": 1e6} | alike
    scan["errors"] = 3
    assert plans.modules({"modules": {"a": [scan], "join/a": [join]}}) == [
        ("a f", 2, 1.5, 2, 9, 4, 3, 1.0),
        ("join/a join", 1, "-", 2, 5, "-", 0, 2.0),
    ]
