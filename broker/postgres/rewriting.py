"""A SELECT in PostgreSQL's language as one that DuckDB evaluates, over relations that are given to it.

What the two languages say differently is rewritten in the tree, a rule a function; the rest is written by
sqlglot's dialects. Nothing but a SELECT comes through, over named relations and a few functions that give
rows, so that no statement and no file is reached by it.

Cost: some milliseconds for the long texts of catalogue browsers; what it gives is kept by who asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from broker.postgres import literals
from broker.postgres.escapes import without_escapes
from broker.postgres.places import place_at
from broker.postgres.settings import SETTINGS
from engine.language.places import did_you_mean
from tureen.errors import LimitExceeded, NotSupported, SyntaxRefused

TEXT_MAX = 32_768
"""Characters of a text that is looked at: those of catalogue browsers have some thousands."""
ROW_FUNCTIONS = {
    "generate_series",
    "unnest",
    "string_to_table",
    "regexp_split_to_table",
    "json_each",
    "pg_get_keywords",
    "pg_timezone_names",
    "generate_subscripts",
}
"""Functions that may stand where a relation does."""
CATALOGUES = {"pg_catalog": "catalogue", "information_schema": "information"}
"""Schemas of PostgreSQL's catalogues, and where their tables stand."""

Name = tuple[str | None, str]
"""A schema, where it is written, and a name."""


_OIDS = re.compile(r"::\s*oid\s*\[\s*\]", re.IGNORECASE)
"""An array of oids, which the parser does not know by that name."""


@lru_cache(1_024)
def select_of(sql: str) -> exp.Query | None:
    """The tree of a SELECT, which nobody changes; None for anything else, or what is not understood.

    Raises SyntaxRefused: a string has an escape that means nothing.
    """
    if len(sql) > TEXT_MAX:
        return None
    plain = without_escapes(sql)
    try:
        found = sqlglot.parse(_OIDS.sub("::oidvector", plain), read="postgres")
    except (SqlglotError, RecursionError):
        return None
    tree = found[0] if len(found) == 1 else None
    return tree if isinstance(tree, exp.Query) and not tree.find(exp.Into, exp.Lock) else None


def too_long(sql: str) -> LimitExceeded:
    """Why a SELECT over queries is not looked at."""
    return LimitExceeded(
        "characters of a SELECT over queries",
        TEXT_MAX,
        len(sql),
        hint="send a shorter text: IN, or parameters",
    )


def relations_of(tree: exp.Query) -> list[Name]:
    """The relations that a SELECT names, each once; names that it defines itself (WITH) are none."""
    own = {one.alias_or_name for one in tree.find_all(exp.CTE)}
    found: dict[Name, None] = {}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            name = (_folded(table.args.get("db")), _folded(table.this) or "")
            if name[0] is not None or name[1] not in own:
                found[name] = None
    return list(found)


def column_names(tree: exp.Query) -> list[str]:
    """What PostgreSQL calls the columns of a SELECT; none where a * stands for some of them."""
    first = tree
    while isinstance(first, exp.SetOperation):
        first = first.this
    if not isinstance(first, exp.Select):
        return []
    if any(one.is_star for one in first.expressions):
        return []
    return [_column_name(one) for one in first.expressions]


def _column_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Alias | exp.Column):
        return str(node.alias_or_name) if node.alias_or_name else "?column?"
    if isinstance(node, exp.Dot):
        return _column_name(node.expression)
    if isinstance(node, exp.Paren | exp.Collate):
        return _column_name(node.this)
    if isinstance(node, exp.Cast):
        inner = _column_name(node.this)
        return inner if inner != "?column?" else node.args["to"].sql("postgres").lower()
    if isinstance(node, exp.Window | exp.Filter | exp.WithinGroup):
        return _column_name(node.this)
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.TimeToStr):
        return "to_char"
    if isinstance(node, exp.ArraySize):
        return "array_length"
    if isinstance(node, exp.TimestampTrunc):
        return "date_trunc"
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
        return "?column?"
    if isinstance(node, exp.CurrentTimestamp):
        return "now"
    if isinstance(node, exp.CurrentVersion):
        return "version"
    if isinstance(node, exp.Identifier):
        return str(node.name)
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return node.sql_name().lower()
    return "?column?"


def place_of_column(tree: exp.Query, sql: str, name: str) -> dict[str, int]:
    """Line and column, from 1, where a column is named first; nothing where it is not."""
    for node in tree.find_all(exp.Column):
        start = node.this.meta.get("start")
        if start is not None and node.name.lower() == name.lower():
            return place_at(sql, start)
    return {}


def place_of_function(tree: exp.Query, sql: str, name: str) -> dict[str, int]:
    """Line and column, from 1, where a function is called first; nothing where it is not."""
    for node in tree.find_all(exp.Func):
        start = node.meta.get("start")
        written = "" if start is None else sql[start : node.meta["end"] + 1]
        if name.lower() in (written.lower(), node.sql_name().lower()) and start is not None:
            return place_at(sql, start)
    return {}


def place_of_table(tree: exp.Query, sql: str, name: str) -> dict[str, int]:
    """Line and column, from 1, where a relation is named first; nothing where it is not."""
    for node in tree.find_all(exp.Table):
        start = node.this.meta.get("start")
        if start is not None and node.name.lower() == name.lower():
            return place_at(sql, start)
    return {}


_PLACEHOLDER = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*|/\*.*?\*/)|\$(\d+)""",
    re.DOTALL,
)


def with_placeholders(sql: str, forms: Mapping[int, str]) -> str:
    """A text in Tureen's language with these in the place of placeholders. forms: by number, with ``{}``
    where the placeholder itself stands.
    """
    return _PLACEHOLDER.sub(
        lambda found: found[0] if found[1] else forms.get(int(found[2]), "{}").format(found[0]), sql
    )


def parameter_uses(tree: exp.Query) -> dict[int, tuple[str, str] | None]:
    """By the number of each parameter what tells its type: ("column", name) that it is compared with,
    ("elements", name) of a column that its elements are compared with, ("type", name) that it is cast to or
    that its place has; None: nothing does.
    """
    found: dict[int, tuple[str, str] | None] = {}
    for one in tree.find_all(exp.Parameter):
        if not str(one.name).isdigit():
            continue
        number = int(one.name)
        if found.get(number) is None:
            found[number] = _use_of(one)
    return found


def _use_of(parameter: exp.Parameter) -> tuple[str, str] | None:
    parent = parameter.parent
    if isinstance(parent, exp.Cast):
        return "type", parent.args["to"].sql("postgres")
    if isinstance(parent, exp.Limit | exp.Offset):
        return "type", "int8"
    kind = "column"
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.Any) or (isinstance(parent, exp.Anonymous) and parent.name.upper() == "ALL"):
        kind, parent = "elements", parent.parent
    if isinstance(parent, exp.Predicate | exp.Binary | exp.Between | exp.In):
        column = next((one for one in parent.iter_expressions() if isinstance(one, exp.Column)), None)
        return None if column is None else (kind, str(column.name))
    return None


def _folded(identifier: exp.Expr | None) -> str | None:
    """A name as PostgreSQL has it: in lower case unless it is quoted."""
    if identifier is None:
        return None
    text = str(identifier.name)
    return text if identifier.args.get("quoted") else text.lower()


def rewritten(
    tree: exp.Query,
    place_of: Callable[[Name], tuple[str, str]],
    user: str,
    is_bytes: literals.IsBytes = lambda column: False,
) -> str:
    """The text for DuckDB. place_of: schema and name of the table of a relation. user: who asks.

    Raises NotSupported, BadValue, and what ``place_of`` raises.
    """
    own = {one.alias_or_name for one in tree.find_all(exp.CTE)}
    now = datetime.now(UTC)

    def rule(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table):
            return _table(node, own, place_of)
        if isinstance(node, exp.Column) and node.args.get("db") is not None:
            return exp.column(node.this.copy(), table=node.args["table"].copy())
        if isinstance(node, exp.Dot):
            return _dot(node)
        if isinstance(node, exp.Operator):
            return _operator(node)
        if isinstance(node, exp.Anonymous):
            return _called(node)
        if isinstance(node, exp.Collate):
            return _inner(node)
        if isinstance(node, exp.Cast):
            return _cast(node)
        if isinstance(node, exp.CurrentTimestamp | exp.Localtimestamp):
            return exp.cast(exp.Literal.string(now.strftime("%Y-%m-%d %H:%M:%S.%f")), "timestamp")
        if isinstance(node, exp.CurrentDate):
            return exp.cast(exp.Literal.string(now.strftime("%Y-%m-%d")), "date")
        if isinstance(node, exp.CurrentUser | exp.SessionUser | exp.CurrentRole):
            return exp.Literal.string(user)
        if isinstance(node, exp.CurrentSchema):
            return exp.Literal.string("public")
        if isinstance(node, exp.CurrentCatalog | exp.CurrentDatabase):
            return exp.Literal.string("tureen")
        if isinstance(node, literals.COMPARISONS):
            return literals.compared(node, is_bytes)
        return node

    try:
        made = tree.copy()
        for node in reversed(list(made.walk())):  # what stands deeper first
            changed = rule(node)
            if changed is not node:
                node.replace(changed)
        return made.sql(dialect="duckdb")
    except (RecursionError, SqlglotError) as refused:
        raise NotSupported(f"this SELECT is not understood: {str(refused)[:200]}") from None


def _inner(node: exp.Expr, key: str = "this") -> exp.Expr:
    found = node.args[key]
    assert isinstance(found, exp.Expr)
    return found


def _table(table: exp.Table, own: set[str], place_of: Callable[[Name], tuple[str, str]]) -> exp.Expr:
    if not isinstance(table.this, exp.Identifier):
        return _row_function(table)
    name = (_folded(table.args.get("db")), _folded(table.this) or "")
    if name[0] is None and name[1] in own:
        return table
    schema, place = place_of(name)
    made = exp.table_(place, db=schema, quoted=True)
    alias = table.args.get("alias")
    made.set(
        "alias", alias.copy() if alias is not None else exp.TableAlias(this=exp.to_identifier(name[1], True))
    )
    for key in ("joins", "laterals", "sample"):
        if table.args.get(key):
            made.set(key, table.args[key])
    return made


_CALLED = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_build_array": "json_array",
    "jsonb_build_array": "json_array",
}
"""Functions that DuckDB calls by another name."""


def _called(call: exp.Anonymous) -> exp.Expr:
    """A function by DuckDB's name; a setting is its value, so that it may stand anywhere."""
    name = call.name.lower()
    if name in _CALLED:
        return exp.Anonymous(this=_CALLED[name], expressions=call.expressions)
    if name == "current_setting" and call.expressions and isinstance(call.expressions[0], exp.Literal):
        value = SETTINGS.get(call.expressions[0].name.lower())
        return exp.null() if value is None else exp.Literal.string(value)
    return call


def _row_function(table: exp.Table) -> exp.Expr:
    """A function in the place of a relation. Raises NotSupported: there is none, or it gives no rows."""
    call = table.this
    if isinstance(call, exp.Dot):
        call = call.expression
    if isinstance(call, exp.Explode):
        call = exp.Anonymous(this="unnest", expressions=[call.this])
    if isinstance(call, exp.StringToArray):  # one row, of one value
        alias = table.alias or "string_to_array"
        return exp.select(exp.alias_(call, alias, quoted=True)).subquery(alias)
    is_series = isinstance(call, exp.ExplodingGenerateSeries | exp.GenerateSeries)
    name = (
        "generate_series" if is_series else call.name if isinstance(call, exp.Anonymous) else call.sql_name()
    )
    if str(name).lower() not in ROW_FUNCTIONS:
        close = did_you_mean(str(name).lower(), ROW_FUNCTIONS)
        raise NotSupported(f"there is no function {name} that gives rows", hint=close)
    table.set("this", call)
    table.set("db", None)
    return table


def _dot(dot: exp.Dot) -> exp.Expr:
    """Functions of the catalogues are called by their names alone."""
    left = dot.this
    if isinstance(left, exp.Identifier | exp.Column) and left.name.lower() in CATALOGUES:
        return _inner(dot, "expression")
    return dot


def _operator(node: exp.Operator) -> exp.Expr:
    """OPERATOR(pg_catalog.~) and the like."""
    sign = str(node.args["operator"]).rpartition(".")[2]
    left, right = node.this, node.expression
    match sign:
        case "~":
            return exp.RegexpLike(this=left, expression=right)
        case "!~":
            return exp.not_(exp.RegexpLike(this=left, expression=right))
        case "~*":
            return exp.RegexpILike(this=left, expression=right)
        case "=":
            return exp.EQ(this=left, expression=right)
        case "<>":
            return exp.NEQ(this=left, expression=right)
        case "~~":
            return exp.Like(this=left, expression=right)
    raise NotSupported(f"there is no operator {sign} here")


_TEXTS = ("NAME", "CHAR", "REGPROC", "REGPROCEDURE", "ACLITEM", "XID", "CID", "PG_NODE_TREE", "REGROLE")


def _cast(cast: exp.Cast) -> exp.Expr:
    to = cast.args["to"]
    name = str(to.args.get("kind") or to.this if isinstance(to, exp.DataType) else to.this)
    name = name.rpartition(".")[2].strip('"').upper()
    match name:
        case "REGCLASS" | "REGTYPE" | "REGNAMESPACE":
            return _registered(name.lower(), cast.this)
        case "OID":
            return exp.cast(cast.this, "bigint")
        case "INT2VECTOR" | "OIDVECTOR":
            return _inner(cast)
    if name in _TEXTS:
        return exp.cast(cast.this, "text")
    if not isinstance(to, exp.DataType):
        return cast
    if to.this in exp.DataType.TEXT_TYPES and not isinstance(cast.this, exp.Literal | exp.Parameter):
        return exp.Anonymous(this="as_text", expressions=[cast.this])
    if to.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
        return exp.cast(literals.instant(cast.this), "timestamp")
    if to.this == exp.DataType.Type.VARBINARY:
        data = literals.of_bytes(cast.this)
        return cast if data is cast.this else data
    if to.this == exp.DataType.Type.ARRAY:
        cast.set("this", literals.listed(cast.this))
    return cast


def _registered(kind: str, value: exp.Expr) -> exp.Expr:
    """A text or parameter that names a relation, type or schema is its oid; an oid is its name."""
    if isinstance(value, exp.Literal):
        if value.name.isdigit():
            return exp.Literal.number(value.name)
        name = value.name.rpartition(".")[2].strip('"')
        return exp.Anonymous(this=f"oid_of_{kind}", expressions=[exp.Literal.string(name)])
    if isinstance(value, exp.Parameter):
        return exp.Anonymous(this=f"oid_of_{kind}", expressions=[value])
    return exp.Anonymous(this=f"name_of_{kind}", expressions=[value])


def refuse_syntax(sql: str) -> SyntaxRefused:
    """Why a text is no SELECT that is understood, with its place."""
    try:
        sqlglot.parse(sql[:TEXT_MAX], read="postgres")
    except SqlglotError as refused:
        first = (getattr(refused, "errors", None) or [{}])[0]
        return SyntaxRefused(
            str(first.get("description") or "this is not understood"),
            line=first.get("line"),
            column=first.get("col"),
        )
    except RecursionError:
        return SyntaxRefused("this is nested too deeply")
    return SyntaxRefused("this is no statement that is answered here")
