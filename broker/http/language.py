"""GET /language: what a text may hold; POST /statements/check: what one means, with nothing done.

A check binds the text against what stands now, as carrying it out would, and asks the shard of a SELECT for
its plan. It is made for editors, at each pause in typing: a plan that takes longer than
``PLAN_MS_MAX``, or whose shard is busy for so long, is missing alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from broker.base.entries import QueryEntry
from broker.http.drops import missing, said_of
from broker.http.errors import BadRequest
from broker.http.noticing import notices_of
from broker.http.plans import plan_for
from broker.http.requests import body_object
from broker.node.node import Node
from broker.node.request_work import TooMuchWork
from broker.observe.query_attributes import query_attributes
from engine.language.listing import language
from engine.language.query import (
    AlterQuery,
    AlterSummary,
    Control,
    CreateFromQuery,
    CreateFromTopic,
    CreateQuery,
    CreateStream,
    CreateSummary,
    Describe,
    DescribeSummary,
    DropStream,
    DropSummary,
    Explain,
    Insert,
    Query,
    RenameQuery,
    Show,
    Statement,
)
from engine.model.attributes import Attribute
from topics.wording import wording_of
from tureen.errors import BrokerUnavailable, LimitExceeded, NameInUse, QueryError

PLAN_MS_MAX = 2_000

KINDS: dict[type, str] = {
    Query: "query",
    CreateStream: "create",
    CreateFromTopic: "create",
    CreateFromQuery: "create",
    CreateSummary: "create",
    DropStream: "drop",
    DropSummary: "drop",
    AlterSummary: "alter_summary",
    AlterQuery: "alter_query",
    CreateQuery: "create",
    Insert: "insert",
    RenameQuery: "alter_query",
    Control: "control",
    Describe: "describe",
    DescribeSummary: "describe",
    Explain: "explain",
    Show: "show",
}

_FIELDS = frozenset({"sql", "template", "parameters"})
_HINT = 'send {"sql": "..."}, or {"template": "... > ?", "parameters": [5]}'


def language_of(node: Node) -> dict[str, Any]:
    """The language with this broker's own functions, and the options of a registration."""
    known = query_attributes(QueryEntry(None, "PENDING"), None, ())
    return language(node.setup.engines.functions) | {
        "registration": [_option(one) for one in (*known, *_OF_PREFERENCE) if one.settable]
    }


_OF_PREFERENCE = (
    Attribute(
        "fade",
        None,
        "of a query with a preference: the factor by which each older granularity counts less",
        accepts="above 0, up to 1",
        kind="number",
    ),
    Attribute(
        "priority",
        "count",
        "of a query with a preference: whether its priority takes an estimate as it is, or as a share",
        choices=("count", "density"),
    ),
)


def _option(one: Attribute) -> dict[str, Any]:
    told = one.as_dict()
    kept = ("name", "type", "unit", "about", "choices", "accepts", "range")
    return {"default": told["value"]} | {name: told[name] for name in kept}


async def checked(node: Node, body: bytes, sql_bytes_max: int, *, of_rows: bool) -> dict[str, Any]:
    """What a text means: its kind, columns, sources, and of a SELECT the plan; or, as ``error``, what
    carrying it out would be refused with. of_rows: as of :func:`broker.http.plans.plan_for`.

    Raises BadRequest, and LimitExceeded for a text that is too long.
    """
    fields = body_object(body, hint=_HINT)
    unknown = sorted(fields.keys() - _FIELDS)
    if unknown:
        raise BadRequest(f"unknown field {unknown[0]!r}", hint=_HINT)
    wording = wording_of(fields, sql_bytes_max, BadRequest)
    told: dict[str, Any] = {
        "error": None,
        "kind": None,
        "name": None,
        "columns": [],
        "sources": [],
        "plan": None,
        "plan_error": None,
        "warnings": [],
    }
    try:
        statement = await node.understand(wording.sql, wording.parameters)
    except (QueryError, LimitExceeded) as refused:
        return told | {"error": refused.as_dict()}
    told |= {"kind": KINDS[type(statement)], "columns": _columns(statement)}
    found = await node.read(wording.sql, partial(notices_of, node.directory, wording))
    told["warnings"] = [one.as_dict() for one in found]
    match statement:
        case CreateStream(stream):
            told["name"] = stream.name
        case CreateFromTopic(name):
            told["name"] = name
        case CreateFromQuery(derived):
            told["name"] = derived.name
        case CreateQuery(name, _, if_not_exists):
            told["name"] = name
            try:
                node.directory.queries.names.require(None if if_not_exists else name, "")
            except NameInUse as taken:
                told["error"] = taken.as_dict()
        case DropStream(name, if_exists=False):
            absent = missing(node.directory, name, said_of(statement))
            told["error"] = None if absent is None else absent.as_dict()
    query = _query(statement)
    if query is not None:
        told["sources"] = [*query.sources, *query.uses]
        try:
            told["plan"] = await plan_for(node, query, False, PLAN_MS_MAX, of_rows=of_rows)
        except (BrokerUnavailable, LimitExceeded, TooMuchWork) as busy:
            told["plan_error"] = busy.as_dict()
    return told


def _query(statement: Statement) -> Query | None:
    match statement:
        case Query():
            return statement
        case Explain(query) | AlterQuery(_, query) | CreateFromQuery(_, query) | CreateQuery(_, query):
            return query
    return None


def _columns(statement: Statement) -> list[dict[str, str]]:
    match statement:
        case CreateStream(stream):
            found = [(one.name, one.type) for one in stream.schema]
        case Describe(_, columns):
            found = list(columns)
        case _:
            query = _query(statement)
            found = [] if query is None else list(query.columns)
    return [{"name": name, "type": str(type_)} for name, type_ in found]
