"""INSERT INTO a stream SELECT: a query whose rows become records of the stream, as they come.

It stands as any registered query does, as in Flink and ksqlDB: what is there when it comes is written first,
then each row once, as it enters the answer. So its rows must only come, or be those that an operator of
changes gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.language.bind.emit import with_insert
from engine.language.bind.environment import Environment
from engine.language.bind.inserts import fitting, path_of, target, target_fields
from engine.language.bind.relation import BoundRelation
from engine.language.bind.select import bind_select, whole_query, with_behind
from engine.language.exits import exits, leave
from engine.language.places import Place, shown
from engine.language.query import InsertTarget, Query
from engine.language.update_patterns import Pattern
from engine.model.source import Field, Stream
from tureen.errors import NotSupported, SyntaxRefused


def bind_insert_query(tree: exp.Expr, sql: str, env: Environment) -> Query:
    """The query of an INSERT. sql: its whole text.

    Raises what binding its SELECT raises, and for its target UnknownSource, UnknownColumn, SyntaxRefused,
    NotSupported, TypeMismatch.
    """
    stream, place = target(tree.this, env), env.text.of_node(tree.this)
    if stream.is_table:
        raise place.refuse(
            NotSupported,
            f"{shown(stream.name)} is a table: INSERT of a SELECT writes rows that only come, to a stream",
            hint="CREATE TABLE name AS SELECT ... is a table whose rows change",
        )
    fields = target_fields(tree.args["columns"], tree.this, stream, env)
    keyed = next((field.name for field in fields if field.from_key), None)
    if keyed is not None:
        raise place.refuse(
            NotSupported,
            f"{shown(keyed)} is read from the record's key, and INSERT of a SELECT writes none",
            hint="name the other columns: INSERT INTO name (a, b) SELECT ...",
        )
    _require_not_null(stream, fields, place)
    select = tree.args["query"]
    relation = _fitted(bind_select(select, env), fields, select, env)
    query = with_behind(whole_query(relation, sql, env), select, env)
    if stream.name in (*query.sources, *query.uses):
        raise place.refuse(
            SyntaxRefused,
            f"{shown(stream.name)} would be inserted into itself, without an end",
            hint="insert into another stream",
        )
    _require_only_comes(query, select, env)
    paths = tuple(path_of(field) for field in fields)
    if paths == tuple((field.name,) for field in fields):
        paths = ()
    query = with_insert(query, InsertTarget(stream.name, stream.topic, paths), select, env)
    return replace(query, uses=(*query.uses, stream.name))


def _require_not_null(stream: Stream, fields: Sequence[Field], place: Place) -> None:
    missing = [field.name for field in stream.schema if not field.nullable and field not in fields]
    if missing:
        raise place.refuse(
            SyntaxRefused,
            f"{shown(missing[0])} of {shown(stream.name)} is NOT NULL, and nothing is inserted for it",
            hint="name it among the columns, and select a value for it",
        )


def _fitted(
    relation: BoundRelation, fields: Sequence[Field], select: exp.Expr, env: Environment
) -> BoundRelation:
    """With columns of the names and types of these."""
    place = env.text.of_node(select)
    if len(relation.columns) != len(fields):
        raise place.refuse(
            SyntaxRefused,
            f"the SELECT has {len(relation.columns):,} columns for {len(fields):,} of the stream",
            hint="columns, in order: " + ", ".join(field.name for field in fields),
        )
    columns = tuple(
        Output(field.name, fitting(output.expression, field, place))
        for output, field in zip(relation.columns, fields, strict=True)
    )
    return replace(relation, columns=columns)


def _require_only_comes(query: Query, select: exp.Expr, env: Environment) -> None:
    read = [stream for name in query.sources if isinstance(stream := env.catalogue.get(name), Stream)]
    tables = [stream.name for stream in read if stream.is_table]
    if query.operator is not None or not leave(query, tables, "istream"):
        return
    what = next(exits(query, tables, Pattern.MON), "its answer")
    raise env.text.of_node(select).refuse(
        NotSupported,
        f"rows of {what} go or change, and records of a stream stay",
        hint="write INSERT INTO name ISTREAM (SELECT ...) for each row as it comes, or a window that closes: "
        "FROM TUMBLE(s, 1 MINUTE) ... GROUP BY window_end",
    )
