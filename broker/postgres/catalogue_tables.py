"""The rows of pg_catalog's and information_schema's tables (:mod:`broker.postgres.catalogue_columns`).

A table without a function that fills it is empty: there is nothing of its kind here.

oids of relations come from their names, so that they are the same after a restart.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from broker.postgres import types
from broker.postgres.catalogue_columns import TABLES
from broker.postgres.messages import Field
from broker.postgres.relations import Relation
from broker.postgres.settings import SETTINGS

_ARROW = {
    "oid": pa.uint32(),
    "int": pa.int32(),
    "big": pa.int64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "float": pa.float64(),
    "ints": pa.list_(pa.int32()),
    "oids": pa.list_(pa.uint32()),
    "texts": pa.list_(pa.string()),
    "instant": pa.timestamp("us"),
}

OWNER, DATABASE, CATALOGUE_SCHEMA, PUBLIC, INFORMATION, QUERIES = 10, 1, 11, 2200, 13_000, 13_001
_SCHEMAS = {"pg_catalog": 11, "public": 2200, "information_schema": 13_000, "queries": 13_001}
_FIRST_OID = 16_384
_PRIMARY_KEYS = 1 << 31
"""The oid of a key's index is that of its table and so much."""

_KINDS = {"stream": "r", "table": "r", "view": "v", "query": "m"}
_TABLE_TYPES = {"stream": "BASE TABLE", "table": "BASE TABLE", "view": "VIEW", "query": "VIEW"}

Row = dict[str, Any]


def tables(relations: Iterable[Relation]) -> dict[str, pa.Table]:
    """Every table with its rows. O(columns of all relations)."""
    known = _with_oids(relations)
    return {
        name: _table(spec, _FILLED[name](known) if name in _FILLED else []) for name, spec in TABLES.items()
    }


Known = list[tuple[int, Relation]]


def _with_oids(relations: Iterable[Relation]) -> Known:
    taken: dict[int, Relation] = {}
    for one in relations:
        oid = _FIRST_OID + zlib.crc32(f"{one.schema}.{one.name}".encode()) % ((1 << 31) - 2 * _FIRST_OID)
        while oid in taken:
            oid += 1
        taken[oid] = one
    return list(taken.items())


def _table(spec: list[str], rows: list[Row]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for one in spec:
        name, _, rest = one.partition(":")
        kind, _, value = rest.partition("=")
        given = _constant(kind, value) if value else None
        columns[name] = pa.array([row.get(name, given) for row in rows], _ARROW[kind])
    return pa.table(columns)


def _constant(kind: str, value: str) -> Any:
    if kind == "bool":
        return value == "t"
    return float(value) if kind == "float" else int(value) if kind in ("int", "oid", "big") else value


def _namespaces(_: Known) -> list[Row]:
    return [{"oid": oid, "nspname": name} for name, oid in _SCHEMAS.items()]


def _classes(known: Known) -> list[Row]:
    found: list[Row] = []
    for oid, one in known:
        namespace = _SCHEMAS[one.schema]
        found.append(
            {
                "oid": oid,
                "relname": one.name,
                "relnamespace": namespace,
                "relkind": _KINDS[one.kind],
                "relnatts": len(one.columns),
                "relhasindex": bool(one.key),
            }
        )
        if one.key:
            index = {"relkind": "i", "relnatts": len(one.key), "relhasindex": False, "relam": 403}
            found.append(
                {"oid": oid + _PRIMARY_KEYS, "relname": f"{one.name}_pkey", "relnamespace": namespace} | index
            )
    return found


def _attributes(known: Known) -> list[Row]:
    found: list[Row] = []
    for oid, one in known:
        for place, (name, type_) in enumerate(one.columns, 1):
            field = types.field_of(name, type_)
            found.append(
                {
                    "attrelid": oid,
                    "attname": name,
                    "atttypid": field.oid,
                    "attlen": field.size,
                    "attnum": place,
                    "atttypmod": field.modifier,
                    "attndims": int(field.oid in types.ELEMENTS),
                    "attnotnull": name in one.required,
                    "attidentity": "",
                    "attgenerated": "",
                    "attcompression": "",
                    "attcollation": 100 if field.oid == types.TEXT else 0,
                }
            )
    return found


def _types(_: Known) -> list[Row]:
    return [
        {
            "oid": one.oid,
            "typname": one.name,
            "typlen": one.size,
            "typcategory": one.category,
            "typelem": one.element,
            "typarray": types.ARRAYS.get(one.oid, 0),
        }
        for one in types.TYPES.values()
    ]


def _places(one: Relation) -> list[int]:
    names = [name for name, _ in one.columns]
    return [names.index(name) + 1 for name in one.key if name in names]


def _indexes(known: Known) -> list[Row]:
    return [
        {
            "indexrelid": oid + _PRIMARY_KEYS,
            "indrelid": oid,
            "indnatts": len(one.key),
            "indnkeyatts": len(one.key),
            "indkey": _places(one),
            "indoption": [0] * len(one.key),
            "indclass": [0] * len(one.key),
            "indcollation": [0] * len(one.key),
        }
        for oid, one in known
        if one.key
    ]


def _constraints(known: Known) -> list[Row]:
    return [
        {
            "oid": oid + _PRIMARY_KEYS,
            "conname": f"{one.name}_pkey",
            "conrelid": oid,
            "conindid": oid + _PRIMARY_KEYS,
            "conkey": _places(one),
        }
        for oid, one in known
        if one.key
    ]


def _descriptions(known: Known) -> list[Row]:
    return [
        {"objoid": oid, "classoid": 1259, "objsubid": 0, "description": _about(one)} for oid, one in known
    ]


def _about(one: Relation) -> str:
    text = " ".join(one.about.split())
    return f"{one.kind}: {text}" if text else one.kind


def _columns(known: Known) -> list[Row]:
    found: list[Row] = []
    for _, one in known:
        for place, (name, type_) in enumerate(one.columns, 1):
            field = types.field_of(name, type_)
            pg = types.TYPES[field.oid]
            found.append(
                {
                    "table_schema": one.schema,
                    "table_name": one.name,
                    "column_name": name,
                    "ordinal_position": place,
                    "is_nullable": "NO" if name in one.required else "YES",
                    "data_type": "ARRAY" if pg.element else pg.sql,
                    "udt_name": pg.name,
                    "numeric_precision": _precision(field),
                    "numeric_precision_radix": 10
                    if field.oid == types.NUMERIC
                    else 2
                    if pg.category == "N"
                    else None,
                    "numeric_scale": type_.scale
                    if field.oid == types.NUMERIC
                    else 0
                    if pg.category == "N"
                    else None,
                    "datetime_precision": {types.TIMESTAMPTZ: 6, types.DATE: 0}.get(field.oid),
                    "dtd_identifier": str(place),
                }
            )
    return found


def _precision(field: Field) -> int | None:
    if field.oid == types.NUMERIC:
        return (field.modifier - 4) >> 16
    return {types.INT4: 32, types.INT8: 64, types.FLOAT8: 53}.get(field.oid)


def _keys(known: Known) -> list[Row]:
    return [
        {
            "constraint_name": f"{one.name}_pkey",
            "table_schema": one.schema,
            "table_name": one.name,
            "column_name": name,
            "ordinal_position": place,
        }
        for _, one in known
        for place, name in enumerate(one.key, 1)
    ]


def _named(known: Known, kinds: str, **names: str) -> list[Row]:
    """Rows of the relations of some kinds. names: of the columns for schema, name and text."""
    return [
        {column: getattr(one, attribute) for attribute, column in names.items()}
        for _, one in known
        if _KINDS[one.kind] in kinds
    ]


_FILLED: dict[str, Callable[[Known], list[Row]]] = {
    "catalogue.pg_namespace": _namespaces,
    "catalogue.pg_class": _classes,
    "catalogue.pg_attribute": _attributes,
    "catalogue.pg_type": _types,
    "catalogue.pg_index": _indexes,
    "catalogue.pg_constraint": _constraints,
    "catalogue.pg_description": _descriptions,
    "catalogue.pg_database": lambda _: [{"oid": DATABASE, "datname": "tureen"}],
    "catalogue.pg_roles": lambda _: [{"oid": OWNER, "rolname": "tureen"}],
    "catalogue.pg_user": lambda _: [{"usesysid": OWNER, "usename": "tureen"}],
    "catalogue.pg_settings": lambda _: [{"name": name, "setting": value} for name, value in SETTINGS.items()],
    "catalogue.pg_am": lambda _: [
        {"oid": 2, "amname": "heap"},
        {"oid": 403, "amname": "btree", "amtype": "i"},
    ],
    "catalogue.pg_tablespace": lambda _: [{"oid": 1663, "spcname": "pg_default"}],
    "catalogue.pg_language": lambda _: [{"oid": 14, "lanname": "sql", "lanowner": OWNER}],
    "catalogue.pg_collation": lambda _: [{"oid": 100, "collname": "default", "collnamespace": 11}],
    "catalogue.pg_stat_user_tables": lambda known: [
        {"relid": oid, "schemaname": one.schema, "relname": one.name} for oid, one in known
    ],
    "catalogue.pg_tables": lambda known: _named(known, "r", schema="schemaname", name="tablename"),
    "catalogue.pg_views": lambda known: _named(
        known, "v", schema="schemaname", name="viewname", about="definition"
    ),
    "catalogue.pg_matviews": lambda known: _named(
        known, "m", schema="schemaname", name="matviewname", about="definition"
    ),
    "catalogue.pg_indexes": lambda known: [
        {
            "schemaname": one.schema,
            "tablename": one.name,
            "indexname": f"{one.name}_pkey",
            "indexdef": f"PRIMARY KEY ({', '.join(one.key)})",
        }
        for _, one in known
        if one.key
    ],
    "information.schemata": lambda _: [{"schema_name": name} for name in _SCHEMAS],
    "information.tables": lambda known: [
        {
            "table_schema": one.schema,
            "table_name": one.name,
            "table_type": _TABLE_TYPES[one.kind],
            "is_insertable_into": "YES" if one.kind in ("stream", "table") else "NO",
        }
        for _, one in known
    ],
    "information.columns": _columns,
    "information.views": lambda known: _named(
        known, "vm", schema="table_schema", name="table_name", about="view_definition"
    ),
    "information.table_constraints": lambda known: [
        {
            "constraint_name": f"{one.name}_pkey",
            "table_schema": one.schema,
            "table_name": one.name,
            "constraint_type": "PRIMARY KEY",
        }
        for _, one in known
        if one.key
    ],
    "information.key_column_usage": _keys,
    "information.constraint_column_usage": _keys,
    "information.table_privileges": lambda known: _named(
        known, "rvm", schema="table_schema", name="table_name"
    ),
    "information.character_sets": lambda _: [{}],
}
"""The tables that have rows."""
