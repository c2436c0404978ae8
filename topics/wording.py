"""What a registration says: a text, or a template with parameters, as records and requests carry it.

    {"sql": "SELECT a FROM s WHERE b > 5"}
    {"template": "SELECT a FROM s WHERE b > ?", "parameters": [5]}
    {"template": "SELECT a FROM s WHERE b > :low", "parameters": {"low": 5}}
    {"plan": {"version": 1, "nodes": {...}, "output": "..."}}

A plan is its text and its options (:mod:`tureen.plan_files.text`): what is registered is these.

What parameters mean is told in :mod:`engine.language.parameters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from engine.model.query_name import QUERY_NAME_TEXT, is_query_name
from tureen.errors import LimitExceeded, TureenError
from tureen.plan_files.text import text_of

FIELDS = frozenset({"sql", "template", "parameters", "plan"})
HINT = 'write {"sql": "SELECT ..."}, or {"template": "SELECT ... > ?", "parameters": [5]}'

Values = list[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wording:
    """A text; with parameters, their values by place or by name."""

    sql: str
    parameters: Values | None = None

    def fields(self) -> dict[str, Any]:
        """As records and requests carry it."""
        if self.parameters is None:
            return {"sql": self.sql}
        return {"template": self.sql, "parameters": self.parameters}

    @property
    def said(self) -> str:
        """Equal for equal wordings alone; of a text the text itself."""
        return said(self.sql, self.parameters)


def said(sql: str, parameters: Any) -> str:
    """One string for a text and its parameters: the text itself where it has none."""
    return (
        sql if parameters is None else orjson.dumps([sql, parameters], option=orjson.OPT_SORT_KEYS).decode()
    )


def checked_name(name: object, refusal: type[TureenError]) -> str:
    """The name of a query in a record or a request. Raises ``refusal`` where it cannot have that."""
    if not isinstance(name, str) or not is_query_name(name):
        raise refusal(f"a query cannot be named {str(name)[:200]!r}", hint=QUERY_NAME_TEXT)
    return name


def planned(fields: Mapping[str, Any], refusal: type[TureenError]) -> Mapping[str, Any]:
    """A record or a request with the text and the options of its plan in the place of that, if it has one.

    Options that it has besides win. Raises PlanRefused; ``refusal`` where it has a text as well.
    """
    if "plan" not in fields:
        return fields
    if fields.keys() & {"sql", "template", "parameters"}:
        raise refusal("both a plan and a text are given", hint=HINT)
    plan = fields["plan"]
    rest = {name: value for name, value in fields.items() if name != "plan"}
    sql = text_of(plan).sql
    own = {name: value for name, value in plan.get("options", {}).items() if value is not None}
    options = fields.get("options") or {}
    return {**rest, "sql": sql, "options": own | options if isinstance(options, dict) else options}


def wording_of(fields: Mapping[str, Any], sql_bytes_max: int, refusal: type[TureenError]) -> Wording:
    """The wording of a record or a request; ``refusal``: the error for one that has none.

    Raises it, and LimitExceeded.
    """
    if ("sql" in fields) == ("template" in fields):
        both = "sql" in fields
        raise refusal("both sql and template are given" if both else "sql is missing", hint=HINT)
    name = "sql" if "sql" in fields else "template"
    sql = fields[name]
    if not isinstance(sql, str) or not sql.strip():
        raise refusal(f"{name} is missing or empty", hint=HINT)
    try:
        size = len(sql.encode("utf-8"))
    except UnicodeEncodeError:
        raise refusal(f"{name} is not valid Unicode") from None
    if size > sql_bytes_max:
        raise LimitExceeded("sql_bytes_max", sql_bytes_max, size, hint="split the query")
    if name == "sql":
        if "parameters" in fields:
            raise refusal("parameters need a template", hint=HINT)
        return Wording(sql)
    parameters = fields.get("parameters")
    if not isinstance(parameters, list | dict):
        raise refusal("the parameters of a template must be a list or an object", hint=HINT)
    return Wording(sql, parameters)
