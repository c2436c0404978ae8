"""The JSON Schema of plans, version 1.

The operators stand in one table: of each the fields with their types, and what they mean. The schema that is
published and the check of a plan (:mod:`tureen.plan_files.check`) are both made from it, so they agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

VERSION = 1
NODES_MAX = 256
DEPTH_MAX = 64
"""Operators above each other."""
TEXT_CHARACTERS_MAX = 65_536

FieldType = Literal[
    "node",
    "name",
    "text",
    "expression",
    "expressions",
    "columns",
    "window",
    "count",
    "amount",
    "flag",
    "kind",
    "function",
    "keys",
    "names",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an operator. choices: of a kind."""

    type: FieldType
    about: str
    required: bool = False
    choices: tuple[str, ...] = ()


_INPUT = Field("node", "the operator whose rows it takes", required=True)
_LEFT = Field("node", "the left input", required=True)
_RIGHT = Field("node", "the right input", required=True)

JOIN_KINDS = (
    "inner",
    "left",
    "right",
    "full",
    "semi",
    "anti",
    "cross",
    "asof",
    "asof left",
)

STREAM_OPERATORS = ("istream", "dstream", "rstream")

OPERATORS: Mapping[str, Mapping[str, Field]] = {
    "scan": {
        "source": Field("name", "a stream, a table or a view", required=True),
        "window": Field("window", "what a bracket behind the source says: RANGE 10 MINUTES, ROWS 5"),
        "begin": Field("text", "first instant of the window: TIMESTAMP '...', NOW - 1 HOUR; with end"),
        "end": Field("text", "last instant of the window; with begin"),
        "function": Field("function", "TUMBLE, HOP or SESSION: window_start and window_end come as columns"),
        "sample": Field("text", "what SAMPLE(...) has in brackets: 10, 100 DOWN TO 5, 10, 7 with a seed"),
        "where": Field("expression", "rows for which this is TRUE"),
    },
    "values": {
        "columns": Field("names", "the names of the columns", required=True),
        "rows": Field("text", "constants: (1, 'a'), (2, 'b')", required=True),
    },
    "unnest": {
        "input": _INPUT,
        "arrays": Field("expressions", "ARRAYs and MAPs; elements are taken side by side", required=True),
        "as": Field("names", "one for each ARRAY, two for each MAP: key and value", required=True),
        "ordinality": Field("name", "the name of a column with the number of the element"),
        "outer": Field("flag", "rows without elements stay"),
    },
    "filter": {
        "input": _INPUT,
        "where": Field("expression", "rows for which this is TRUE", required=True),
    },
    "project": {
        "input": _INPUT,
        "columns": Field("columns", "names with expressions over the input's columns", required=True),
    },
    "aggregate": {
        "input": _INPUT,
        "keys": Field("columns", "names with the expressions that rows are grouped by"),
        "calls": Field("columns", "names with aggregates: COUNT(*), SUM(v) FILTER (WHERE v > 0)"),
    },
    "distinct": {"input": _INPUT},
    "sort": {
        "input": _INPUT,
        "by": Field("expressions", "what ORDER BY has: n DESC NULLS LAST", required=True),
    },
    "limit": {
        "input": _INPUT,
        "count": Field("count", "at most so many rows"),
        "offset": Field("count", "after so many"),
    },
    "with_ties": {
        "input": _INPUT,
        "by": Field("expressions", "what ORDER BY has: n DESC NULLS LAST", required=True),
        "count": Field("count", "so many rows, and those that equal the last in all of by", required=True),
        "offset": Field("count", "after so many"),
    },
    "row_number": {
        "input": _INPUT,
        "partition": Field("expressions", "rows that are equal in these are numbered together"),
        "order": Field("expressions", "in this order"),
        "as": Field("name", "the name of the column with the number", required=True),
        "first": Field("count", "only rows up to this number"),
    },
    "window_functions": {
        "input": _INPUT,
        "partition": Field("expressions", "what PARTITION BY has"),
        "order": Field("expressions", "what ORDER BY has"),
        "calls": Field("columns", "names with functions: LAG(v, 1) IGNORE NULLS, SUM(v)", required=True),
        "frames": Field("columns", "of some of these their frames: ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
    },
    "join": {
        "left": _LEFT,
        "right": _RIGHT,
        "kind": Field("kind", "which rows besides the pairs; inner if it is left out", choices=JOIN_KINDS),
        "on": Field("expression", "of pairs: columns of the left are l.name, those of the right r.name"),
    },
    "semi_join": {
        "input": _INPUT,
        "inner": Field("node", "the operator among whose rows is looked", required=True),
        "keys": Field("keys", "pairs of an expression over the input and a column of inner"),
        "negated": Field("flag", "rows without a partner"),
        "null_aware": Field("flag", "as IN: NULL makes the outcome NULL; else as EXISTS"),
    },
    "set_operation": {
        "left": _LEFT,
        "right": _RIGHT,
        "kind": Field("kind", "which", required=True, choices=("union", "intersect", "except")),
        "all": Field("flag", "copies count"),
        "on": Field("names", "of except all: the columns that are compared"),
    },
    "stream": {
        "input": _INPUT,
        "operator": Field("kind", "which changes", required=True, choices=STREAM_OPERATORS),
        "window": Field("window", "over the changes, as of scan; all of them if it is left out"),
        "sample": Field("text", "as of scan, without DOWN TO"),
    },
    "sql": {"text": Field("text", "a query that this version has no operators for", required=True)},
    "shared": {
        "query": Field("name", "the id of a registered query", required=True),
        "node": Field("name", "the name of an operator in its plan, as it is exported", required=True),
    },
}
"""By ``op``. Over HTTP alone a plan may share an operator of another query."""

EMIT: Mapping[str, Field] = {
    "into": Field("name", "the last part of the topic's name"),
    "on_close": Field("flag", "only rows of closed windows"),
    "format": Field("kind", "of the records", choices=("upsert", "debezium", "diff")),
    "encoding": Field("kind", "of the records", choices=("json", "avro", "json_schema", "protobuf")),
    "snapshot": Field("flag", "the answer as it stands comes first; yes if it is left out"),
    "insert": Field("name", "the stream whose records the rows become"),
    "columns": Field("names", "those of the stream, one for each column of the output"),
}
ALLOWED: Mapping[str, Field] = {
    "max_fp": Field("amount", "the share of wrong rows that the answer may have"),
    "max_fn": Field("amount", "the share of missing rows"),
    "max_error": Field("amount", "the relative error of aggregates"),
    "weight": Field("amount", "how much the query counts beside others"),
}
OF_OPERATORS = ("nodes", "output", "stream", "with", "emit")
"""Fields of a plan that has operators, and not its whole text."""
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "session": ("gap", "partition"),
}
"""By name, their arguments."""

_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_TEXT = {"type": "string", "minLength": 1, "maxLength": TEXT_CHARACTERS_MAX}
_TYPES: Mapping[FieldType, dict[str, Any]] = {
    "node": _NAME,
    "name": _NAME,
    "text": _TEXT,
    "window": _TEXT,
    "expression": _TEXT,
    "expressions": {"type": "array", "items": _TEXT, "minItems": 1},
    "columns": {"type": "object", "additionalProperties": _TEXT, "minProperties": 1},
    "count": {"type": "integer", "minimum": 0},
    "amount": {"type": "number", "minimum": 0},
    "flag": {"type": "boolean"},
    "keys": {
        "type": "array",
        "items": {"type": "array", "prefixItems": [_TEXT, _NAME], "minItems": 2, "maxItems": 2},
        "minItems": 1,
    },
    "names": {"type": "array", "items": _NAME, "minItems": 1},
    "function": {
        "type": "object",
        "properties": {
            "name": {"enum": list(FUNCTIONS)},
            **dict.fromkeys(("size", "slide", "offset", "gap"), _TEXT),
            "partition": {"type": "array", "items": _TEXT, "minItems": 1},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
}


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a plan. What names stand for is not in it: see
    :func:`tureen.plan_files.check.check`.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://tureen.dev/schemas/plan-{VERSION}.json",
        "title": "A plan of Tureen",
        "type": "object",
        "properties": {
            "version": {"const": VERSION, "description": "of this schema"},
            "nodes": {
                "type": "object",
                "description": "the operators by name",
                "minProperties": 1,
                "maxProperties": NODES_MAX,
                "additionalProperties": {"oneOf": [_node(op, fields) for op, fields in OPERATORS.items()]},
            },
            "output": _NAME | {"description": "the operator whose rows are the answer"},
            "sql": _TEXT | {"description": "in the place of operators: the whole text"},
            "stream": {"enum": list(STREAM_OPERATORS), "description": "which changes leave it"},
            "with": _object(ALLOWED) | {"description": "what WITH (...) says behind the query"},
            "emit": _object(EMIT) | {"description": "its changes are written to a topic"},
            "options": {
                "type": "object",
                "description": "of the registration: maintenance, strategy, partitions, weight, ...",
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            },
            "operators": {
                "type": "object",
                "description": "what is set of entities that it shares: id -> {attribute: value}",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": {"type": ["string", "number", "boolean"]},
                },
            },
        },
        "required": ["version"],
        "oneOf": [
            {"required": ["nodes", "output"], "not": {"required": ["sql"]}},
            {
                "required": ["sql"],
                "not": {"anyOf": [{"required": [name]} for name in OF_OPERATORS]},
            },
        ],
        "additionalProperties": False,
    }


def _node(op: str, fields: Mapping[str, Field]) -> dict[str, Any]:
    found = _object(fields)
    found["properties"] = {"op": {"const": op}} | found["properties"]
    found["required"] = ["op", *found["required"]]
    return {"title": op} | found


def _object(fields: Mapping[str, Field]) -> dict[str, Any]:
    properties = {
        name: ({"enum": list(field.choices)} if field.choices else _TYPES[field.type])
        | {"description": field.about}
        for name, field in fields.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, field in fields.items() if field.required],
        "additionalProperties": False,
    }
