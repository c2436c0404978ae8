"""Plans of queries as files: exported from what was bound, so that the text of the plan binds to it again.

That it does is looked at with each export: a query for which it does not (it has an operator that plans lack)
is exported as its text alone. So export, import, export always gives the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.base import options as query_options
from broker.base.entries import QueryEntry
from broker.node.directory import Directory
from engine.language.plan_files import NoPlan, bare, commuted, plan_of
from engine.language.query import Query
from engine.language.render import render_query
from topics.wording import Values
from tureen.errors import NotSupported, PlanRefused, QueryError, TureenError
from tureen.plan_files.schema import VERSION
from tureen.plan_files.text import text_of


def exported(directory: Directory, entry: QueryEntry) -> dict[str, Any]:
    """The plan of a registered query with its options. Raises PlanRefused, and what its text is refused with.
    Any thread.
    """
    if entry.sql is None:
        raise PlanRefused("plan", "the query has no text")
    options = query_options.shown(entry.options)
    options.pop(query_options.PAUSED_BECAUSE, None)
    plan = plan_for(directory, entry.sql, entry.parameters)
    return plan | ({"options": options} if options else {})


def plan_for(directory: Directory, sql: str, parameters: Values | None = None) -> dict[str, Any]:
    """The plan of a text. Raises QueryError, LimitExceeded, PlanRefused. Any thread."""
    query = _query(directory, sql, parameters)
    plan = _plan(directory, query)
    if plan is not None:
        return plan
    if parameters is not None:
        raise PlanRefused("plan", "the query has an operator that plans lack, and parameters")
    return {"version": VERSION, "sql": sql}


def query_of(directory: Directory, plan: Any) -> Query:
    """What a plan means. Raises PlanRefused, LimitExceeded."""
    text = text_of(plan)
    try:
        return _query(directory, text.sql, None)
    except QueryError as refused:
        raise text.refusal(refused) from None


def canonical(directory: Directory, query: Query) -> Mapping[str, Any]:
    """Equal for queries that are the same but for the order of conditions: the plan; the rendered query
    where there is none.
    """
    query = commuted(bare(query))
    try:
        return plan_of(query, directory.streams())
    except NoPlan:
        return {"sql": render_query(query)}


def _plan(directory: Directory, query: Query) -> dict[str, Any] | None:
    """None where the text of the plan would not bind to the query."""
    streams = directory.streams()
    try:
        plan = plan_of(query, streams)
        again = _query(directory, text_of(plan).sql, None)
        if bare(again) == bare(query) and plan_of(again, streams) == plan:
            return plan
    except (NoPlan, TureenError):
        pass
    return None


def _query(directory: Directory, sql: str, parameters: Values | None) -> Query:
    statement = directory.parse(sql, parameters)
    if not isinstance(statement, Query):
        raise NotSupported(
            "only a SELECT has a plan", hint="CREATE and DROP are statements", line=1, column=1
        )
    return statement
