"""Plans as files: the plan of a text means what the text does; what is no plan is refused with a path."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.language.plan_files import NoPlan, bare, commuted, plan_of
from engine.language.query import Query
from engine.model.source import SourceName, Stream
from tests.language.fixtures import CATALOGUE, bind
from tureen.errors import PlanRefused, QueryError, TureenError
from tureen.plan_files.check import check
from tureen.plan_files.difference import differences
from tureen.plan_files.files import read, written
from tureen.plan_files.schema import DEPTH_MAX, NODES_MAX, OPERATORS, schema
from tureen.plan_files.text import text_of

GOLDEN = Path(__file__).parent / "golden"
STREAMS = {SourceName(name): one for name, one in CATALOGUE.items() if isinstance(one, Stream)}
SCHEMA = jsonschema.Draft202012Validator(schema())


def queries() -> dict[str, Query]:
    """All golden texts that are queries."""
    found = {}
    for path in sorted(GOLDEN.glob("*/*.sql")):
        try:
            query = bind(path.read_text(encoding="utf-8").removesuffix("\n"))
        except TureenError:
            continue
        if isinstance(query, Query):
            found[path.stem] = query
    return found


QUERIES = queries()


def again(query: Query) -> tuple[dict[str, Any], Query]:
    """The plan of a query, and what that means."""
    plan = plan_of(query, STREAMS)
    bound = bind(text_of(plan).sql)
    assert isinstance(bound, Query)
    return plan, bound


def means_the_same(query: Query) -> bool:
    """Whether the text of its plan binds to it; without, it is exported as its text."""
    try:
        _, bound = again(query)
    except (NoPlan, QueryError):
        return False
    return bare(bound) == bare(query)


PLANNED = {name: query for name, query in QUERIES.items() if means_the_same(query)}


def _allowed(query: Query) -> tuple[Any, ...]:
    """What may become of its scans, which makes them no others."""
    return tuple((scan.sample, scan.window_down_to_ms) for scan in query.scans())


@pytest.mark.parametrize("name", sorted(PLANNED))
def test_export_import_export_gives_the_same_plan(name: str) -> None:
    plan, bound = again(PLANNED[name])
    assert plan_of(bound, STREAMS) == plan
    assert [*plan_of(bound, STREAMS)["nodes"]] == [*plan["nodes"]]
    assert _allowed(bound) == _allowed(PLANNED[name])
    SCHEMA.validate(plan)
    assert read(written(plan, "p.json"), "p.json") == plan
    assert read(written(plan, "p.yaml"), "p.yaml") == plan


def test_samples_and_what_a_text_allows_have_plans() -> None:
    names = {name for name in QUERIES if name.startswith(("sample_", "window_down_to", "allowed"))}
    assert len(names) >= 15
    assert names <= PLANNED.keys()


def test_few_texts_have_no_plan_of_operators() -> None:
    preferring = {name for name, query in QUERIES.items() if query.preference is not None}
    assert preferring
    assert preferring.isdisjoint(PLANNED), "version 1 has no preference"
    without = sorted(QUERIES.keys() - PLANNED.keys() - preferring)
    assert len(without) <= len(QUERIES) / 12, without


def test_all_operators_are_in_some_golden_text() -> None:
    found = {node["op"] for query in PLANNED.values() for node in again(query)[0]["nodes"].values()}
    assert found == OPERATORS.keys() - {"sql", "shared"}


SCAN = {"op": "scan", "source": "flights"}


def plan(nodes: Mapping[str, Any], output: str = "a", **more: Any) -> dict[str, Any]:
    return {"version": 1, "nodes": nodes, "output": output, **more}


def chain(length: int) -> dict[str, Any]:
    nodes: dict[str, Any] = {"n0": SCAN}
    for place in range(1, length):
        nodes[f"n{place}"] = {"op": "distinct", "input": f"n{place - 1}"}
    return plan(nodes, f"n{length - 1}")


REFUSED: dict[str, tuple[Any, str]] = {
    "no object": ([], "plan"),
    "no version": ({"nodes": {"a": SCAN}, "output": "a"}, "version"),
    "later version": (plan({"a": SCAN}) | {"version": 2}, "version"),
    "version true": (plan({"a": SCAN}) | {"version": True}, "version"),
    "unknown field": (plan({"a": SCAN}, more=1), "more"),
    "no nodes": (plan({}), "nodes"),
    "dangling output": (plan({"a": SCAN}, "b"), "output"),
    "dangling input": (plan({"a": {"op": "distinct", "input": "b"}}), "nodes.a.input"),
    "reads itself": (plan({"a": {"op": "distinct", "input": "a"}}), "nodes.a"),
    "cycle": (
        plan(
            {
                "a": {"op": "join", "left": "b", "right": "s", "on": "TRUE"},
                "b": {"op": "distinct", "input": "a"},
                "s": SCAN,
            }
        ),
        "nodes.",
    ),
    "unread": (plan({"a": SCAN, "b": SCAN}), "nodes.b"),
    "unknown operator": (plan({"a": {"op": "teleport"}}), "nodes.a.op"),
    "operator no text": (plan({"a": {"op": ["scan"]}}), "nodes.a.op"),
    "unknown field of operator": (plan({"a": SCAN | {"colour": "red"}}), "nodes.a.colour"),
    "missing field": (plan({"a": {"op": "scan"}}), "nodes.a.source"),
    "too deep": (chain(DEPTH_MAX + 1), f"nodes.n{DEPTH_MAX}"),
    "too many": (plan({f"n{i}": SCAN for i in range(NODES_MAX + 1)}, "n0"), "nodes"),
    "empty expression": (plan({"a": SCAN | {"where": " "}}), "nodes.a.where"),
    "closes bracket": (plan({"a": SCAN | {"where": "TRUE) UNION (SELECT 1"}}), "nodes.a.where"),
    "comment": (plan({"a": SCAN | {"where": "TRUE -- and no more"}}), "nodes.a.where"),
    "two statements": (plan({"a": SCAN | {"where": "TRUE; DROP STREAM flights"}}), "nodes.a.where"),
    "open quote": (plan({"a": SCAN | {"where": "dest = 'x"}}), "nodes.a.where"),
    "negative count": (plan({"a": {"op": "limit", "input": "s", "count": -1}, "s": SCAN}), "nodes.a.count"),
    "half a window": (plan({"a": SCAN | {"begin": "NOW"}}), "nodes.a"),
    "unknown kind": (
        plan({"a": {"op": "join", "left": "s", "right": "s", "kind": "outer", "on": "TRUE"}, "s": SCAN}),
        "nodes.a.kind",
    ),
    "unknown emit": (plan({"a": SCAN}, emit={"format": "xml"}), "emit.format"),
    "negative share": (plan({"a": SCAN}, **{"with": {"max_fn": -0.5}}), "with.max_fn"),
    "unknown share": (plan({"a": SCAN}, **{"with": {"max_f": 0.5}}), "with.max_f"),
    "list as option": (plan({"a": SCAN}, options={"weight": [1]}), "options.weight"),
    "both forms": (plan({"a": SCAN}, sql="SELECT * FROM flights"), "nodes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plan_is_refused_with_a_path(name: str) -> None:
    given_, path = REFUSED[name]
    with pytest.raises(PlanRefused) as refused:
        check(given_)
    assert refused.value.path.startswith(path)


def test_a_number_where_a_text_belongs_is_refused_with_the_text() -> None:
    with pytest.raises(PlanRefused, match=r"nodes\.a\.sample") as refused:
        check(plan({"a": SCAN | {"sample": 10}}))
    assert refused.value.hint == 'write it in quotes: "10"'


@pytest.mark.parametrize(
    ("nodes", "path", "column"),
    [
        ({"a": SCAN | {"source": "nowhere"}}, "nodes.a.source", 1),
        ({"a": SCAN | {"where": "delay > 3 AND nothing = 1"}}, "nodes.a.where", 15),
        ({"a": SCAN | {"where": "delay > 'x'"}}, "nodes.a.where", None),
        ({"a": SCAN | {"window": "RANGE ten MINUTES"}}, "nodes.a.window", None),
        (
            {"a": {"op": "project", "input": "s", "columns": {"x": "delay", "y": "gone"}}, "s": SCAN},
            "nodes.a.columns.y",
            1,
        ),
        (
            {"a": {"op": "aggregate", "input": "s", "calls": {"n": "SUMM(delay)"}}, "s": SCAN},
            "nodes.a.calls.n",
            1,
        ),
    ],
)
def test_a_refused_expression_is_named_by_its_path(
    nodes: dict[str, Any], path: str, column: int | None
) -> None:
    text = text_of(plan(nodes))
    with pytest.raises(QueryError) as refused:
        bind(text.sql)
    told = text.refusal(refused.value)
    assert told.path == path
    if column is not None:
        assert (told.line, told.column) == (1, column)


def test_the_order_of_conditions_makes_no_difference() -> None:
    one, other, third = (
        bind(f"SELECT dest FROM flights JOIN weather USING (dest, day) WHERE {where}")
        for where in (
            "delay > 3 AND (carrier = 'A' OR distance < 5)",
            "(distance < 5 OR carrier = 'A') AND delay > 3",
            "delay > 4 AND (carrier = 'A' OR distance < 5)",
        )
    )
    assert isinstance(one, Query)
    assert isinstance(other, Query)
    assert isinstance(third, Query)
    assert bare(one) != bare(other)
    assert commuted(bare(one)) == commuted(bare(other)) != commuted(bare(third))


def test_an_operator_that_is_read_twice_is_written_once() -> None:
    late = SCAN | {"window": "RANGE 1 HOUR", "where": "delay > 30"}
    both = {"op": "join", "left": "late", "right": "late", "on": "l.carrier = r.dest"}
    text = text_of(plan({"late": late, "a": both})).sql
    assert text.count("flights") == 1
    query = bind(text)
    assert isinstance(query, Query)
    assert query.sources == ("flights",)


def test_operators_of_another_plan_are_taken_in_by_name() -> None:
    other = plan({"s": SCAN, "top": {"op": "limit", "input": "s", "count": 3}}, "top")
    mine = plan(
        {"theirs": {"op": "shared", "query": "q", "node": "top"}, "a": {"op": "distinct", "input": "theirs"}}
    )

    def resolve(query: str, node: str) -> tuple[Mapping[str, Any], str]:
        assert query == "q"
        return other, node

    assert bind(text_of(mine, resolve).sql)
    with pytest.raises(PlanRefused, match="over HTTP"):
        text_of(mine)
    mine["nodes"]["theirs"]["node"] = "bottom"
    with pytest.raises(PlanRefused, match=r"nodes\.theirs\.node"):
        text_of(mine, resolve)


def test_the_schema_accepts_what_is_a_plan_and_refuses_what_has_another_shape() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    SCHEMA.validate(plan({"a": SCAN}, stream="istream", emit={}, options={"weight": 2}))
    SCHEMA.validate({"version": 1, "sql": "SELECT * FROM flights"})
    by_names = {"dangling output", "dangling input", "reads itself", "cycle", "unread", "too deep"}
    by_text = {
        "closes bracket",
        "comment",
        "two statements",
        "open quote",
        "half a window",
        "empty expression",
    }
    for name in REFUSED.keys() - by_names - by_text:
        assert not SCHEMA.is_valid(REFUSED[name][0]), name


def test_the_published_schema_is_that_of_the_code() -> None:
    page = Path(__file__).parents[2] / "docs" / "plan-schema.json"
    assert json.loads(page.read_text(encoding="utf-8")) == schema()


def test_the_example_of_the_page_is_a_plan() -> None:
    page = (Path(__file__).parents[2] / "docs" / "plans.md").read_text(encoding="utf-8")
    example = read(page.partition("```yaml\n")[2].partition("```")[0], "a.yaml")
    SCHEMA.validate(example)
    assert bind(text_of(example).sql)
    _, _, rows = page.partition("| `op` |")
    for op, fields in OPERATORS.items():
        (line,) = (line for line in rows.splitlines() if line.startswith(f"| `{op}` |"))
        assert all(f"`{field}`" in line for field in fields), op


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"version": 1, "version": 1}', "a.json"),
        ("version: 1\nversion: 1\n", "a.yaml"),
        ("a: &x [1]\nb: *x\n", "a.yml"),
        ("{", "a.json"),
        ("a: [", "a.yaml"),
        ("a: !!python/object/apply:os.getcwd []", "a.yaml"),
        ("? [a, b]\n: 3\n", "a.yaml"),
        ("3: 4\n", "a.yaml"),
        ('{"options": {"weight": NaN}}', "a.json"),
        ('{"options": {"weight": -Infinity}}', "a.json"),
        ("[" * 100_000, "a.json"),
        ("[" * 5_000, "a.yaml"),
        ("x" * (1024 * 1024 + 1), "a.json"),
    ],
)
def test_files_that_are_none_are_refused(text: str, name: str) -> None:
    with pytest.raises(PlanRefused):
        read(text, name)


def test_differences_have_paths() -> None:
    one, other = plan({"a": SCAN}), plan({"a": SCAN | {"where": "delay > 3"}}, options={"weight": 2})
    assert [(sign, path) for sign, path, _, _ in differences(one, other)] == [
        ("+", "nodes.a.where"),
        ("+", "options"),
    ]
    assert list(differences(one, one)) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
NODES = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(st.sampled_from(["op", "input", "where", "source", "left", "right"]), VALUES, max_size=4)
    | st.fixed_dictionaries(
        {"op": st.sampled_from([*OPERATORS, "no"]), "input": st.sampled_from("abc")},
        optional={"where": st.text(max_size=8), "source": st.text(max_size=8), "count": VALUES},
    ),
    max_size=3,
)


PLANS = st.fixed_dictionaries({"version": st.just(1), "nodes": NODES, "output": st.sampled_from("abc")})


@given(VALUES | PLANS)
def test_whatever_comes_is_a_plan_or_refused(value: Any) -> None:
    try:
        text = text_of(value)
    except PlanRefused:
        return
    with contextlib.suppress(TureenError):
        bind(text.sql)
