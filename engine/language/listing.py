"""What the language is made of, as JSON values: for editors, and for whoever wants to know.

It is read from the tables that the grammar and the binder go by: words, catalogues of functions, type names,
options. What has no such table, the forms of statements and of windows, stands here.
"""

from __future__ import annotations

from typing import Any

from engine.language.aggregates import AGGREGATE_ALIASES, AGGREGATES
from engine.language.bind.typenames import TYPE_NAMES
from engine.language.functions import ALIASES, FUNCTIONS, FunctionCatalogue
from engine.language.grammar.durations import UNITS_MS
from engine.language.grammar.gathered import LISTS, OBJECTS
from engine.language.grammar.table_functions import USAGE
from engine.language.grammar.words import BY_PLACE, RESERVED
from engine.language.known_options import PLACES
from engine.language.window_functions import WINDOW_FUNCTIONS
from engine.model.types import DECIMAL_DIGITS_MAX

STATEMENTS = (
    ("SELECT", "SELECT columns FROM source [window] WHERE condition", "a standing query; it is registered"),
    ("VALUES", "VALUES (1, 'a'), (2, 'b')", "rows of constants, wherever a query stands"),
    (
        "CREATE STREAM",
        "CREATE STREAM name (column TYPE, ...) WITH (timestamp = 'column')",
        "a stream of the records of a topic; or AS SELECT ... from other streams",
    ),
    (
        "CREATE STREAM ... FROM TOPIC",
        "CREATE STREAM name FROM TOPIC 'topic'",
        "a stream whose columns are inferred from the topic's records; CREATE TABLE likewise",
    ),
    (
        "CREATE TABLE",
        "CREATE TABLE name (column TYPE PRIMARY KEY, ...)",
        "a table: the latest record of each key of a topic; or AS SELECT ... with a key",
    ),
    (
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW name AS SELECT ...",
        "a view, and a query of its name that keeps its answer",
    ),
    ("CREATE QUERY", "CREATE QUERY name AS SELECT ...", "a query is registered under a name"),
    ("CREATE VIEW", "CREATE VIEW name AS SELECT ...", "a name for a query that others read"),
    (
        "CREATE SUMMARY",
        "CREATE SUMMARY name ON stream (column) WITH GRANULARITY 10 SECONDS AND COLLAPSE (2, 4)",
        "what queries with a preference estimate by",
    ),
    (
        "INSERT",
        "INSERT INTO name (column, ...) VALUES (literal, ...)",
        "records are written to the topic of a stream or a table",
    ),
    (
        "DROP",
        "DROP STREAM name [CASCADE]",
        "a stream, TABLE, VIEW, SUMMARY or QUERY goes; CASCADE: with all that reads it",
    ),
    (
        "SHOW",
        "SHOW QUERIES [EXTENDED]",
        "a list; also STREAMS, TABLES, VIEWS, SOURCES, SUMMARIES, FUNCTIONS",
    ),
    ("DESCRIBE", "DESCRIBE name", "columns of a stream, a table or a view; DESCRIBE SUMMARY name"),
    ("EXPLAIN", "EXPLAIN [ANALYZE] SELECT ...", "the plan of a query, or of 'handle'; ANALYZE measures it"),
    ("PAUSE", "PAUSE 'handle' [RELEASE]", "a query stays registered without being served"),
    ("RESUME", "RESUME 'handle'", "a paused query is served again"),
    ("TERMINATE", "TERMINATE 'handle'", "a query ends; DROP QUERY name does the same"),
    ("ALTER QUERY", "ALTER QUERY 'handle' AS SELECT ...", "another text for a query that runs"),
    ("ALTER SUMMARY", "ALTER SUMMARY name SET (theta = 0.5)", "theta and zone_rows_min of a summary"),
)
"""First words, a form, what it does."""

_WINDOWS = {
    "TUMBLE": "windows of one size behind each other; gives window_start and window_end",
    "HOP": "windows of one size that begin every slide, and overlap; gives window_start and window_end",
    "SESSION": "windows that end after a gap without rows of the same key; gives window_start and window_end",
}
_ENDS = {"START": "the first instant of", "END": "the first instant behind"}
_OVER = {
    "ROW_NUMBER": (
        "ROW_NUMBER() OVER (PARTITION BY x ORDER BY y)",
        "the number of a row among those of its part, from 1",
    )
}
_ROWS = {
    "UNNEST": (
        "UNNEST(a) WITH ORDINALITY AS t (x, n)",
        "a row for each element of an ARRAY, each entry of a MAP; in FROM, and in SELECT",
    ),
    "EXPLODE": ("EXPLODE(a)", "UNNEST in SELECT"),
    "GENERATE_SERIES": (
        "GENERATE_SERIES(start, stop, step) AS t (x)",
        "in FROM, a row for each number or instant up to stop",
    ),
}
_GATHERED = {
    "JSON_AGG": (
        ("JSON_AGG(x ORDER BY y)", "ARRAY_AGG as JSON"),
        sorted(LISTS - {"JSON_AGG"}),
    ),
    "MAP_AGG": (("MAP_AGG(key, x ORDER BY y)", "a MAP of all keys, of equal ones the last value"), []),
    "JSON_OBJECT_AGG": (
        ("JSON_OBJECT_AGG(key, x ORDER BY y)", "the same as an object of JSON"),
        sorted(OBJECTS - {"JSON_OBJECT_AGG"}),
    ),
}
BRACKETS = (
    ("[RANGE 10 MINUTES]", "rows of the last 10 minutes, at any instant"),
    ("[RANGE 10 MINUTES SLIDE 1 MINUTE]", "the same, as it was when the last minute ended"),
    ("[ROWS 100]", "the last 100 rows"),
    ("[PARTITION BY key ROWS 1]", "the last row of each key"),
    ("[NOW]", "rows of this instant"),
    ("[UNBOUNDED]", "all rows that are retained"),
)
"""Windows behind a stream in FROM, and their rows."""

_TYPES = {
    "BOOLEAN": "TRUE or FALSE",
    "INTEGER": "whole numbers of 32 bits",
    "BIGINT": "whole numbers of 64 bits",
    "DOUBLE": "floating point of 64 bits",
    "DECIMAL": f"DECIMAL(digits, places): exact, up to {DECIMAL_DIGITS_MAX} digits",
    "STRING": "text",
    "DATE": "a day",
    "TIMESTAMP": "an instant in UTC, in milliseconds",
    "JSON": "any JSON",
    "ARRAY": "ARRAY<type>: values of one type",
    "STRUCT": "STRUCT<name type, ...>: named values",
    "MAP": "MAP<STRING, type>: values of one type by keys",
    "BYTES": "bytes, base64 in records",
    "UUID": "128 bits",
}
_DECIMAL_ALIASES = ("NUMERIC", "DEC")


def language(functions: FunctionCatalogue) -> dict[str, Any]:
    """Everything that a text may hold but names. functions: those that a text may call."""
    return {
        "keywords": sorted(RESERVED | BY_PLACE),
        "reserved": sorted(RESERVED),
        "statements": [{"words": words, "form": form, "about": about} for words, form, about in STATEMENTS],
        "functions": _functions(functions),
        "types": [
            {"name": name, "about": about, "aliases": _type_aliases(name)} for name, about in _TYPES.items()
        ],
        "windows": [{"form": form, "about": about} for form, about in BRACKETS],
        "units": sorted(UNITS_MS, key=lambda unit: (UNITS_MS[unit], unit)),
        "options": [
            {
                "place": place,
                "name": name,
                "form": option.form,
                "about": option.about,
                "example": option.example,
                "choices": list(option.choices),
            }
            for place, known in PLACES.items()
            for name, option in known.items()
        ],
    }


def _functions(catalogue: FunctionCatalogue) -> list[dict[str, Any]]:
    found = [
        _function(one.name, "scalar", one.usage, one.doc, _aliases(ALIASES, one.name))
        for one in FUNCTIONS.values()
        if not one.is_operator
    ]
    found += [
        _function(one.name, "aggregate", one.usage, one.doc, _aliases(AGGREGATE_ALIASES, one.name))
        for one in AGGREGATES.values()
    ]
    found += [
        _function(name, "window", usage.removeprefix("write ").split(", such as ")[-1], _WINDOWS[name])
        for name, usage in USAGE.items()
    ]
    found += [_function(name, "window", usage, about) for name, (usage, about) in _OVER.items()]
    found += [_function(name, "table", usage, about) for name, (usage, about) in _ROWS.items()]
    found += [_function(name, "aggregate", *one, aliases) for name, (one, aliases) in _GATHERED.items()]
    found += [
        _function(one.name, "window", f"{one.usage} OVER (PARTITION BY x ORDER BY y)", one.doc)
        for one in WINDOW_FUNCTIONS.values()
    ]
    found += [
        _function(
            f"{name}_{end}",
            "window",
            f"{name}_{end}(ts, INTERVAL '1' HOUR)",
            f"{about} the window of GROUP BY {name}(ts, INTERVAL '1' HOUR)",
        )
        for name in ("TUMBLE", "SESSION")
        for end, about in _ENDS.items()
    ]
    found += [
        _function(
            f"HOP_{end}",
            "window",
            f"HOP_{end}(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
            f"{about} the window of GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
        )
        for end, about in _ENDS.items()
    ]
    for user in catalogue.users:
        usage = f"{user.name}({', '.join(map(str, user.arguments))})"
        marks = [word for word in ("vectorised", "arrow", "deterministic") if getattr(user, word)]
        about = ", ".join([f"gives {user.result}; a function of this broker's own", *marks])
        found.append(_function(user.name, "user", usage, about))
    return sorted(found, key=lambda one: str(one["name"]))


def _function(
    name: str, kind: str, signature: str, about: str, aliases: list[str] | None = None
) -> dict[str, Any]:
    return {"name": name, "kind": kind, "signature": signature, "about": about, "aliases": aliases or []}


def _aliases(table: dict[str, str], name: str) -> list[str]:
    return [alias for alias, meant in table.items() if meant == name]


def _type_aliases(name: str) -> list[str]:
    if name == "DECIMAL":
        return list(_DECIMAL_ALIASES)
    return [alias for alias, meant in TYPE_NAMES.items() if str(meant) == name and alias != name]
