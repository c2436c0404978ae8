"""Text to statement: the language's front door.

``parse`` is pure and total: any text gives a statement or an error of :mod:`tureen.errors`, within time in
proportion
to its length. Cost: about a millisecond for a simple SELECT.
"""

from __future__ import annotations

from sqlglot import exp

from engine.language.bind.commands import (
    bind_alter,
    bind_control,
    bind_create_query,
    bind_derived,
    bind_describe,
    bind_explain,
    bind_rename,
    bind_show,
)
from engine.language.bind.environment import NO_SUMMARIES, Catalogue, Environment, Summaries
from engine.language.bind.from_topic import bind_from_topic
from engine.language.bind.insert_queries import bind_insert_query
from engine.language.bind.inserts import bind_insert
from engine.language.bind.select import bind_query
from engine.language.bind.streams import bind_create, bind_drop
from engine.language.bind.summaries import (
    bind_alter_summary,
    bind_create_summary,
    bind_describe_summary,
    bind_drop_summary,
)
from engine.language.dialect import parse_tree
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.grammar import command_nodes, nodes
from engine.language.places import Text
from engine.language.query import Statement
from engine.language.tracing import Trace
from engine.model.limits import Limits
from tureen.errors import SyntaxRefused


def parse(
    sql: str,
    catalogue: Catalogue,
    limits: Limits,
    trace: Trace | None = None,
    functions: FunctionCatalogue = BUILT_IN,
    summaries: Summaries = NO_SUMMARIES,
) -> Statement:
    """Parse and bind one statement against the streams, views, functions and summaries there are.

    Raises SyntaxRefused, UnknownSource, UnknownSummary, UnknownColumn, TypeMismatch, NotSupported,
    LimitExceeded, each with the line and the column (from 1) of what is wrong, and mostly with a hint.
    """
    text = Text(sql, trace)
    _check_size(text, limits)
    try:
        tree = parse_tree(text, limits)
        return _bind(tree, Environment(text, limits, catalogue, functions=functions, summaries=summaries))
    except RecursionError:
        # Nesting is bounded, so this is a caller whose own stack was almost full.
        raise text.at(0).exceeded("nesting_max", limits.nesting_max, hint="nest less") from None


def _bind(tree: exp.Expr, env: Environment) -> Statement:
    match tree:
        case nodes.SelectQuery():
            return bind_query(tree, env)
        case nodes.CreateStreamNode():
            return bind_create(tree, env)
        case nodes.CreateFromTopicNode():
            return bind_from_topic(tree, env)
        case nodes.CreateDerivedNode():
            return bind_derived(tree, env)
        case command_nodes.CreateQueryNode():
            return bind_create_query(tree, env)
        case command_nodes.InsertNode():
            return bind_insert(tree, env)
        case command_nodes.InsertQueryNode():
            return bind_insert_query(tree, env.text.sql, env)
        case command_nodes.RenameQueryNode():
            return bind_rename(tree, env)
        case nodes.CreateSummaryNode():
            return bind_create_summary(tree, env)
        case nodes.AlterSummaryNode():
            return bind_alter_summary(tree, env)
        case nodes.DropNode():
            return bind_drop_summary(tree) if tree.args["what"] == "SUMMARY" else bind_drop(tree)
        case command_nodes.ShowNode():
            return bind_show(tree)
        case command_nodes.DescribeNode():
            is_summary = tree.args.get("summary")
            return bind_describe_summary(tree, env) if is_summary else bind_describe(tree, env)
        case command_nodes.ExplainNode():
            return bind_explain(tree, env)
        case command_nodes.AlterNode():
            return bind_alter(tree, env)
        case command_nodes.ControlNode():
            return bind_control(tree, env)
    raise AssertionError(f"the grammar makes no {type(tree).__name__}")


def _check_size(text: Text, limits: Limits) -> None:
    if len(text.sql) > limits.sql_bytes_max:
        raise text.at(0).exceeded("sql_bytes_max", limits.sql_bytes_max, hint="send a shorter text")
    try:
        size = len(text.sql.encode())
    except UnicodeEncodeError as error:
        raise text.at(error.start).refuse(
            SyntaxRefused, "this character is half of a surrogate pair"
        ) from None
    if size > limits.sql_bytes_max:
        raise text.at(0).exceeded("sql_bytes_max", limits.sql_bytes_max, size, hint="send a shorter text")
