"""What clients ask of the catalogue: catalogs, schemas, tables, keys, and what the server is.

Source: FlightSql.proto of Apache Arrow, for the columns of each and the numbers of SqlInfo.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from typing import Any

import pyarrow as pa

from broker.flight.messages import BadMessage
from broker.postgres.relations import Relation, Relations
from engine.language.evaluation.patterns import matches

CATALOG = "tureen"
SCHEMAS = ("public", "queries")
PATTERN_CHARACTERS_MAX = 1_000
TYPES = {"table": "TABLE", "stream": "STREAM", "view": "VIEW", "query": "QUERY"}
"""What relations are called, by their kind."""


def _column(name: str, type_: pa.DataType, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, type_, nullable)


_CATALOG = _column("catalog_name", pa.string(), nullable=True)
_SCHEMA = _column("db_schema_name", pa.string(), nullable=True)
_TABLE = _column("table_name", pa.string())
_KEY = (_column("column_name", pa.string()), _column("key_name", pa.string(), nullable=True))
_RULES = (_column("update_rule", pa.uint8()), _column("delete_rule", pa.uint8()))


def _of_foreign_keys() -> pa.Schema:
    parts = [
        _column(f"{side}_{name}", pa.string(), nullable=name in ("catalog_name", "db_schema_name"))
        for side in ("pk", "fk")
        for name in ("catalog_name", "db_schema_name", "table_name", "column_name")
    ]
    names = [_column(f"{side}_key_name", pa.string(), nullable=True) for side in ("fk", "pk")]
    return pa.schema([*parts, _column("key_sequence", pa.int32()), *names, *_RULES])


_UNION = pa.dense_union(
    [
        pa.field("string_value", pa.string()),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(pa.string())),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
    ]
)
_INFO = pa.schema([_column("info_name", pa.uint32()), _column("value", _UNION)])

_LOWER_CASE, _AS_WRITTEN = 3, 2
"""How names are compared without quotes and in them: SqlSupportedCaseSensitivity."""


def facts() -> dict[int, str | bool | int]:
    """What SqlInfo tells, by its numbers."""
    return {
        0: "Tureen",
        1: metadata.version("tureen"),
        2: pa.__version__,
        3: False,  # it only reads
        4: True,  # SQL
        5: False,  # Substrait
        8: 0,  # transactions
        9: False,  # CancelQuery; a call that ends is cancelled
        100: 0,  # statements end after: never
        500: False,
        501: False,
        502: True,
        503: _LOWER_CASE,
        504: '"',
        505: _AS_WRITTEN,
        506: True,
    }


def _info(asked: Iterable[int]) -> pa.Table:
    known = facts()
    wanted = [one for one in asked if one in known] or ([] if list(asked) else list(known))
    kinds = {str: 0, bool: 1, int: 3}
    codes = [kinds[type(known[one])] for one in wanted]
    values: list[list[Any]] = [[] for _ in _UNION]
    offsets = []
    for one, code in zip(wanted, codes, strict=True):
        offsets.append(len(values[code]))
        values[code].append(known[one])
    union = pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(some, one.type) for some, one in zip(values, _UNION, strict=True)],
        [one.name for one in _UNION],
    )
    return pa.Table.from_arrays([pa.array(wanted, pa.uint32()), union], schema=_INFO)


def _fitting(names: Iterable[str], pattern: str | None) -> set[str]:
    """The names that fit, in any letter case; None: all do. Raises BadMessage."""
    given = sorted(set(names))
    if pattern is None:
        return set(given)
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise BadMessage(f"a pattern has at most {PATTERN_CHARACTERS_MAX:,} characters")
    fits = matches(pa.array(given, pa.string()), pattern, ignore_case=True)
    return {name for name, fit in zip(given, fits.to_pylist(), strict=True) if fit}


def _given(asked: Any, field: str) -> str | None:
    return getattr(asked, field) if asked.HasField(field) else None


def _tables(asked: Any, relations: Relations) -> pa.Table:
    columns = [_CATALOG, _SCHEMA, _TABLE, _column("table_type", pa.string())]
    if asked.include_schema:
        columns.append(_column("table_schema", pa.binary()))
    there = relations.all()
    schemas = _fitting(SCHEMAS, _given(asked, "db_schema_filter_pattern"))
    names = _fitting((one.name for one in there), _given(asked, "table_name_filter_pattern"))
    types = set(asked.table_types)
    rows: list[list[object]] = []
    if _given(asked, "catalog") in (None, CATALOG):
        for one in there:
            type_ = TYPES[one.kind]
            if one.schema in schemas and one.name in names and (not types or type_ in types):
                row: list[object] = [CATALOG, one.schema, one.name, type_]
                rows.append([*row, _schema_of(one)] if asked.include_schema else row)
    return _listed(rows, pa.schema(columns))


def _schema_of(one: Relation) -> bytes:
    schema = pa.schema([pa.field(name, type_.arrow, name not in one.key) for name, type_ in one.columns])
    data: bytes = schema.serialize().to_pybytes()
    return data


def _primary_keys(asked: Any, relations: Relations) -> pa.Table:
    schema = pa.schema([_CATALOG, _SCHEMA, _TABLE, *_KEY, _column("key_sequence", pa.int32())])
    found = [
        one
        for one in relations.all()
        if one.name == asked.table and _given(asked, "db_schema") in (None, one.schema)
    ]
    rows: list[list[object]] = [
        [CATALOG, one.schema, one.name, name, None, place]
        for one in found
        for place, name in enumerate(one.key, 1)
    ]
    return _listed(rows, schema)


def _listed(rows: list[list[object]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(list(values), one.type) for values, one in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def table_of(command: str, asked: Any, relations: Relations) -> pa.Table:
    """What a command of the catalogue gives. On the event loop. Raises BadMessage: it is none."""
    match command:
        case "CommandGetSqlInfo":
            return _info(asked.info)
        case "CommandGetCatalogs":
            return _listed([[CATALOG]], pa.schema([_column("catalog_name", pa.string())]))
        case "CommandGetDbSchemas":
            schemas = _fitting(SCHEMAS, _given(asked, "db_schema_filter_pattern"))
            here = _given(asked, "catalog") in (None, CATALOG)
            rows: list[list[object]] = [[CATALOG, one] for one in SCHEMAS if here and one in schemas]
            return _listed(rows, pa.schema([_CATALOG, _column("db_schema_name", pa.string())]))
        case "CommandGetTables":
            return _tables(asked, relations)
        case "CommandGetTableTypes":
            rows = [[one] for one in TYPES.values()]
            return _listed(rows, pa.schema([_column("table_type", pa.string())]))
        case "CommandGetPrimaryKeys":
            return _primary_keys(asked, relations)
        case "CommandGetImportedKeys" | "CommandGetExportedKeys":
            return _of_foreign_keys().empty_table()
    raise BadMessage(f"{command} is not for here")
