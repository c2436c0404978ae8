"""Views, derived streams, and statements about what stands."""

from __future__ import annotations

from sqlglot import exp

from engine.language.bind.constants import is_constant
from engine.language.bind.environment import Environment
from engine.language.bind.insert_queries import bind_insert_query
from engine.language.bind.select import bind_select, whole_query, with_behind
from engine.language.bind.sources import as_stream, named, renamed, uses_of, with_operator
from engine.language.grammar import command_nodes
from engine.language.places import shown
from engine.language.query import (
    AlterQuery,
    Control,
    CreateFromQuery,
    CreateQuery,
    Describe,
    Explain,
    Query,
    RenameQuery,
    Show,
)
from engine.language.render import render_name
from engine.model.expressions import Column
from engine.model.query_name import QUERY_NAME_TEXT, is_query_name
from engine.model.source import Derived, SourceName, Stream
from engine.windows.clauses import UNBOUNDED
from tureen.errors import NotSupported, SyntaxRefused

HANDLE_CHARACTERS_MAX = 200


def bind_derived(tree: exp.Expr, env: Environment) -> CreateFromQuery:
    """CREATE VIEW, CREATE TABLE ... AS and CREATE STREAM ... AS. Raises what binding its SELECT raises,
    NotSupported for a stream whose rows do not only come.
    """
    name, what = SourceName(str(tree.this.this)), str(tree.args["what"])
    sql = env.text.sql[tree.args["begin"] : tree.args["end"]].rstrip()
    emits = tree.args.get("materialized")
    if emits is not None:
        _query_name(tree.this, env)
    select = tree.args["query"]
    relation = as_stream(with_operator(bind_select(select, env), select), env.text.of_node(select))
    if names := tree.args.get("names"):
        relation = renamed(relation, names, env.text.of_node(tree.this))
        columns = ", ".join(render_name(str(one.this)) for one in names)
        sql = f"SELECT * FROM ({sql}) AS {render_name(name)} ({columns})"
    uses = uses_of(env)
    if name in uses:
        raise env.text.of_node(tree.this).refuse(
            SyntaxRefused,
            f"{shown(name)} would select from itself",
            hint="give it another name, or select from the stream",
        )
    is_stream = what == "STREAM"
    if is_stream and is_constant(relation):
        raise env.text.of_node(select).refuse(
            NotSupported, "rows of constants are there, they do not come", hint="write CREATE VIEW"
        )
    if is_stream and not _only_comes(relation.query(sql), env):
        raise env.text.of_node(tree.args["query"]).refuse(
            NotSupported,
            "rows of this SELECT also go or change, a stream only grows",
            hint="write CREATE TABLE ... AS where they have a key, CREATE VIEW where not; or CREATE STREAM "
            "... AS ISTREAM (SELECT ...), whose rows are what comes",
        )
    derived = Derived(name, sql, is_stream, what == "TABLE")
    return CreateFromQuery(
        derived,
        whole_query(relation, sql, env),
        env.text.sql,
        bool(tree.args.get("replace")),
        bool(tree.args.get("if_not_exists")),
        emits,
    )


def _only_comes(query: Query, env: Environment) -> bool:
    """Whether rows only ever come: a selection from all rows or from all changes of a query, or one answer
    for each window as it closes, or the rows of several such together.
    """
    last = query.last_stream
    if last is not None:
        stage, *behind = query.stages[last:]
        assert stage.stream is not None
        return stage.stream.window == UNBOUNDED and all(each.is_row_by_row for each in behind)
    scan, stream = query.scan, env.catalogue.get(query.source)
    if scan.window != UNBOUNDED or not isinstance(stream, Stream) or stream.is_table:
        return False
    window_end = len(stream.schema) + 1
    for stage in query.stages:
        if stage.condition_of_rows is not None:
            continue
        if stage.aggregate is not None and scan.assignment is not None:
            keys = [key.expression for key in stage.aggregate.keys]
            comes = any(isinstance(key, Column) and key.index == window_end for key in keys)
        elif stage.united is not None:
            comes = _only_comes(stage.united, env)
        else:
            comes = stage.outputs_of_rows is not None
        if not comes:
            return False
        window_end = -1  # what comes after would have to keep it, which a plan does not tell
    return True


def bind_show(tree: exp.Expr) -> Show:
    """SHOW."""
    return Show(tree.args["what"].lower(), bool(tree.args.get("extended")))


def bind_describe(tree: exp.Expr, env: Environment) -> Describe:
    """DESCRIBE. Raises UnknownSource."""
    relation = named(tree.this, env, bind_select)
    columns = tuple((output.name, output.type) for output in relation.columns)
    return Describe(SourceName(str(tree.this.this)), columns)


def bind_explain(tree: exp.Expr, env: Environment) -> Explain:
    """EXPLAIN."""
    analyze = bool(tree.args.get("analyze"))
    handle = tree.args.get("handle")
    if handle is not None:
        return Explain(None, _handle(handle, env), analyze)
    return Explain(_query_in(tree, env), None, analyze)


def bind_control(tree: exp.Expr, env: Environment) -> Control:
    """PAUSE, RESUME, TERMINATE."""
    handle = _handle(tree.args["handle"], env)
    return Control(tree.args["action"], handle, tree.args["release"], bool(tree.args.get("if_exists")))


def bind_create_query(tree: exp.Expr, env: Environment) -> CreateQuery:
    """CREATE QUERY."""
    return CreateQuery(_query_name(tree.this, env), _query_in(tree, env), tree.args["if_not_exists"])


def bind_rename(tree: exp.Expr, env: Environment) -> RenameQuery:
    """ALTER QUERY ... RENAME TO."""
    return RenameQuery(_handle(tree.args["handle"], env), _query_name(tree.this, env))


def bind_alter(tree: exp.Expr, env: Environment) -> AlterQuery:
    """ALTER QUERY."""
    handle = _handle(tree.args["handle"], env)
    return AlterQuery(handle, _query_in(tree, env))


def _query_in(tree: exp.Expr, env: Environment) -> Query:
    """The query that a command carries."""
    sql, query = env.text.sql[tree.args["begin"] : tree.args["end"]], tree.args["query"]
    if isinstance(query, command_nodes.InsertQueryNode):
        return bind_insert_query(query, sql, env)
    return with_behind(whole_query(bind_select(query, env), sql, env), query, env)


def _query_name(node: exp.Expr, env: Environment) -> str:
    name = str(node.this)
    if not is_query_name(name):
        raise env.text.of_node(node).refuse(
            SyntaxRefused, f"{shown(name)} cannot be the name of a query", hint=QUERY_NAME_TEXT
        )
    return name


def _handle(node: exp.Expr, env: Environment) -> str:
    handle = str(node.this)
    if not handle or len(handle) > HANDLE_CHARACTERS_MAX or not handle.isprintable():
        raise env.text.of_node(node).refuse(
            SyntaxRefused, "this is no handle", hint="write the handle that the registration gave, in quotes"
        )
    return handle
