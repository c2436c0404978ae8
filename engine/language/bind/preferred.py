"""What a query with a preference may be: refusals of all else.

What it finds must be part of its exact answer, however little of its streams was looked at. So joins are
inner and by equality, and nothing in it drops, numbers or changes rows by what other rows there are: rows
that were not found would decide. Aggregates are estimates, which a condition must not build upon.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sqlglot import exp

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.language.bind.environment import Environment
from engine.language.bind.relation import BoundRelation
from engine.language.grammar import nodes, source_nodes
from engine.language.places import Place, Text, shown
from engine.language.preference import Preference
from engine.language.query import Query
from engine.language.render import render_expression
from engine.model.expressions import Cast, Column, Expression
from engine.model.sample import Sample
from engine.model.source import Stream
from engine.model.types import BIGINT
from engine.windows.assignment import Assignment
from engine.windows.clauses import UNBOUNDED, Window
from tureen.errors import NotSupported, SyntaxRefused

SOURCES_MAX = 2
"""Streams that such a query may join."""
WITH = "beside WITH PREFERENCE"
_OR = "or leave WITH PREFERENCE out"


def check_from(tree: exp.Expr, text: Text) -> None:
    """Raise NotSupported for joins that are written otherwise than a query with a preference has them, at
    their place, and for a subquery in FROM that does more than select.
    """
    source = tree.args["source"]
    if not isinstance(source, nodes.FromList):
        return
    for join in source.args["joins"]:
        kind = str(join.args["kind"]).upper()
        kind = "ASOF" if join.args.get("asof") else "INNER" if kind == "CROSS" else kind
        if kind != "INNER":
            raise text.of_node(join).refuse(
                NotSupported,
                f"{kind} JOIN {WITH} is not supported: rows that were not found would decide what it gives",
                hint=f"write JOIN ... ON a.key = b.key, {_OR}",
            )
    for item in (source.this, *(join.this for join in source.args["joins"])):
        if isinstance(item.this, nodes.FromList):
            raise text.of_node(item).refuse(
                NotSupported,
                f"joins in brackets {WITH} are not supported",
                hint="write the joins one after another, without brackets",
            )


def check_relation(relation: BoundRelation, place: Place) -> None:
    """Raise NotSupported unless FROM is streams that are only selected from. place: of the clause."""
    relations = [relation, *(join.inner for join in relation.joins)]
    for each in relations:
        if each.stages or (each is not relation and each.joins):
            telling = [stage for stage in each.stages if stage.outputs_of_rows is None]
            what = keyword(telling[0]) if telling else "a join"
            raise place.refuse(
                NotSupported,
                f"a subquery or view with {what} {WITH} is not supported",
                hint=f"select from streams, or from views that only select from one, {_OR}",
            )
        if each.stream.is_table or each.scan.history:
            raise place.refuse(
                NotSupported,
                f"{shown(each.stream.name)} is a table: a preference is about streams, which have summaries",
                hint=f"leave the table out, {_OR}",
            )
    for join in relation.joins:
        if join.kind != "inner" or join.latest is not None or not join.is_flat:
            raise place.refuse(
                NotSupported,
                f"a view with such a join {WITH} is not supported",
                hint=f"join the streams themselves: FROM a JOIN b ON a.key = b.key, {_OR}",
            )


class Windowed(Protocol):
    """A scan, bound or made."""

    @property
    def window(self) -> Window: ...

    @property
    def assignment(self) -> Assignment | None: ...

    @property
    def sample(self) -> Sample | None: ...


def check_windows(scans: Iterable[Windowed], tree: exp.Expr, text: Text) -> None:
    """Raise NotSupported for windows and samples of FROM: WINDOW is the window of every source."""
    place = text.of_node(tree.args["preference"])
    written = _written_windows(tree)
    for scan in scans:
        if scan.sample is not None:
            raise (text.of_node(written["sample"]) if "sample" in written else place).refuse(
                NotSupported,
                f"SAMPLE {WITH} is not supported: one drops rows at random, the other says which are wanted",
                hint="leave one of them out",
            )
        if scan.window != UNBOUNDED or scan.assignment is not None:
            node = written.get("window")
            hint = "write WINDOW 1 MINUTE behind the preference, which is [RANGE 1 MINUTE] of every source"
            has_window = tree.args["preference"].args.get("window") is not None
            raise (place if node is None else text.of_node(node)).refuse(
                NotSupported,
                "WINDOW is the window of every source: there is no other beside it"
                if has_window
                else f"windows in FROM {WITH} are not supported",
                hint="leave this one out" if has_window and node is not None else hint,
            )


def _written_windows(tree: exp.Expr) -> dict[str, exp.Expr]:
    """The first window and the first sample that stand in the text of this SELECT."""
    source = tree.args["source"]
    items = (
        [source.this, *(join.this for join in source.args["joins"])]
        if isinstance(source, nodes.FromList)
        else [source]
    )
    found: dict[str, exp.Expr] = {}
    for item in items:
        if isinstance(item.this, source_nodes.TableFunction):
            found.setdefault("window", item.this)
        for part in ("window", "sample"):
            if item.args.get(part) is not None:
                found.setdefault(part, item.args[part])
    if tree.args.get("ends") is not None:
        found.setdefault("window", tree.args["ends"])
    return found


def check_query(query: Query, preference: Preference, tree: exp.Expr, env: Environment) -> None:
    """Raise NotSupported for stages that would make of what was found what is not in the exact answer."""
    place = env.text.of_node(tree.args["preference"])
    for stage in query.stages:
        why = why_not_preferred(stage)
        if why is not None:
            having = tree.args.get("having")
            is_having = stage.condition_of_rows is not None
            raise (env.text.of_node(having) if is_having and having is not None else place).refuse(
                NotSupported,
                f"{'HAVING' if is_having else keyword(stage)} {WITH} is not supported: {why}",
                hint=f"leave {'HAVING' if is_having else 'it'} out, {_OR}",
            )
        if stage.join is not None and not stage.join.keys:
            raise place.refuse(
                NotSupported,
                f"a join without an equality {WITH} is not supported",
                hint="join the streams by equal columns: WHERE a.key = b.key",
            )
    _check_keys(query, preference, place, env)


DECIDED_BY_OTHERS = "rows that were not found would decide what it gives"


@asked_of("text")
def why_not_preferred(stage: Stage) -> str | None:
    """Why a query with a preference has no such stage; None: it may have."""
    return None


@asked_of("text")
def keyword(stage: Stage) -> str:
    """What a text has for a stage."""
    return "other stages"


def _check_keys(query: Query, preference: Preference, place: Place, env: Environment) -> None:
    """Raise NotSupported where a join is not of two streams by equal columns, those of the summaries among
    them: an estimate of a value is how many partners a row with it has.
    """
    joins = [stage.join for stage in query.stages if stage.join is not None]
    if not joins:
        return
    if len(joins) >= SOURCES_MAX:
        raise place.refuse(
            NotSupported,
            f"a join of {len(joins) + 1} streams {WITH} is not supported",
            hint=f"join two streams, {_OR}",
        )
    (join,) = joins
    stream = env.catalogue[query.source]
    assert isinstance(stream, Stream)
    compared: tuple[set[int], set[int]] = (set(), set())
    for pair in join.keys:
        for side, key in enumerate(pair):
            column = _key_column(key)
            if column is None:
                raise place.refuse(
                    NotSupported,
                    f"a join by {shown(render_expression(key))} {WITH} is not supported",
                    hint="join by columns of the same type: WHERE a.key = b.key",
                )
            compared[side].add(column)
    for priority in preference.priorities:
        if priority.column not in compared[priority.scan]:
            definition = env.summaries[priority.summary]
            raise place.refuse(
                NotSupported,
                f"{shown(definition.attribute)} of {shown(priority.source)} is not compared by the join: its "
                "estimates do not say how many partners there are",
                hint="take the summary of a column that the join compares: WHERE a.key = b.key",
            )


def _key_column(key: Expression) -> int | None:
    """The place of the column that a key of a join is; a wider whole number is the same. None: it is none."""
    if isinstance(key, Cast) and key.type == BIGINT and key.operand.type.is_integer:
        key = key.operand
    return key.index if isinstance(key, Column) else None


def check_changes(tree: exp.Expr, text: Text) -> None:
    """Raise NotSupported for changes that are about instants: a row is found at another one than the exact
    answer has it.
    """
    operator, emit = tree.args.get("operator"), tree.args.get("emit")
    if operator is not None and str(operator.this) != "ISTREAM":
        raise text.of_node(operator).refuse(
            NotSupported,
            f"{operator.this} {WITH} is not supported: rows are in the answer from when they are found",
            hint=f"write ISTREAM, whose rows are what is found, {_OR}",
        )
    if emit is not None and emit.args.get("on_close") is not None:
        raise text.of_node(emit.args["on_close"]).refuse(
            NotSupported,
            f"ON WINDOW CLOSE {WITH} is not supported: rows may be found after their window closed",
            hint="write EMIT CHANGES",
        )


def check_options(given: dict[str, float], place: Place) -> None:
    """Raise SyntaxRefused for what a text allows besides: a preference already says what is left out."""
    if given:
        raise place.refuse(
            SyntaxRefused,
            f"{', '.join(given)} beside WITH PREFERENCE: it gives what there is time for",
            hint="leave one of them out; weight may stand beside it",
        )
