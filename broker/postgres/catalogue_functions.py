"""Functions of PostgreSQL as macros: those that DuckDB lacks, or whose answer is ours.

Each stands in a paragraph of its own.
"""

from __future__ import annotations

import pyarrow as pa

from broker.postgres import types
from broker.postgres.settings import SERVER_VERSION

MACROS = [
    " ".join(one.split())
    for one in r"""
version() AS 'PostgreSQL $SERVER_VERSION (Tureen)'

format_type(id, modifier) AS (SELECT CASE WHEN id IN (1700, 1231) AND modifier > 4 THEN 'numeric(' ||
    ((modifier - 4) >> 16) || ',' || ((modifier - 4) & 65535) || ')' || CASE id WHEN 1231 THEN '[]' ELSE ''
    END ELSE sql_name END FROM catalogue.type_names WHERE type_oid = id)

pg_get_userbyid(id) AS 'tureen'

pg_table_is_visible(id) AS (id NOT IN (SELECT oid FROM catalogue.pg_class WHERE relnamespace <> 2200))

pg_type_is_visible(id) AS true

pg_function_is_visible(id) AS true

pg_get_expr(a, b) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR

pg_get_indexdef(id) AS (SELECT indexdef FROM catalogue.index_definitions WHERE index_oid = id), (id,
    place, pretty) AS (SELECT CASE WHEN place = 0 THEN indexdef ELSE columns[place] END FROM
    catalogue.index_definitions WHERE index_oid = id)

pg_get_constraintdef(id) AS (SELECT definition FROM catalogue.index_definitions WHERE index_oid = id),
    (id, pretty) AS (SELECT definition FROM catalogue.index_definitions WHERE index_oid = id)

pg_get_viewdef(id) AS (SELECT definition FROM catalogue.view_definitions WHERE view_oid = id), (id,
    pretty) AS (SELECT definition FROM catalogue.view_definitions WHERE view_oid = id)

pg_get_partkeydef(id) AS NULL::VARCHAR

pg_get_statisticsobjdef_columns(id) AS NULL::VARCHAR

pg_get_ruledef(id) AS NULL::VARCHAR, (id, pretty) AS NULL::VARCHAR

pg_get_triggerdef(id) AS NULL::VARCHAR, (id, pretty) AS NULL::VARCHAR

pg_get_functiondef(id) AS NULL::VARCHAR

pg_get_function_result(id) AS NULL::VARCHAR

pg_get_function_arguments(id) AS NULL::VARCHAR

pg_get_function_identity_arguments(id) AS NULL::VARCHAR

pg_get_serial_sequence(a, b) AS NULL::VARCHAR

pg_encoding_to_char(id) AS 'UTF8'

pg_char_to_encoding(name) AS 6

pg_relation_is_publishable(id) AS false

pg_is_in_recovery() AS false

pg_is_other_temp_schema(id) AS false

pg_my_temp_schema() AS 0

pg_advisory_unlock_all() AS NULL::VARCHAR

pg_backend_pid() AS 1

pg_postmaster_start_time() AS NULL::TIMESTAMP

pg_total_relation_size(id) AS 0::BIGINT

pg_relation_size(id) AS 0::BIGINT, (id, fork) AS 0::BIGINT

pg_table_size(id) AS 0::BIGINT

pg_indexes_size(id) AS 0::BIGINT

pg_database_size(id) AS 0::BIGINT

pg_size_pretty(size) AS size || ' bytes'

pg_tablespace_location(id) AS ''

obj_description(id) AS (SELECT description FROM catalogue.pg_description WHERE objoid = id AND objsubid
    = 0), (id, catalog) AS (SELECT description FROM catalogue.pg_description WHERE objoid = id AND
    objsubid = 0 AND catalog = 'pg_class')

col_description(id, place) AS NULL::VARCHAR

shobj_description(id, catalog) AS NULL::VARCHAR

has_schema_privilege(a, b) AS true, (a, b, c) AS true

has_table_privilege(a, b) AS (b ILIKE '%select%'), (a, b, c) AS (c ILIKE '%select%')

has_any_column_privilege(a, b) AS (b ILIKE '%select%'), (a, b, c) AS (c ILIKE '%select%')

has_column_privilege(a, b, c) AS (c ILIKE '%select%'), (a, b, c, d) AS (d ILIKE '%select%')

has_database_privilege(a, b) AS true, (a, b, c) AS true

has_function_privilege(a, b) AS false, (a, b, c) AS false

current_schemas(implicit) AS CASE WHEN implicit THEN ['pg_catalog', 'public'] ELSE ['public'] END

current_setting(asked) AS (SELECT max(setting) FROM catalogue.pg_settings WHERE name = lower(asked)),
    (asked, missing_ok) AS (SELECT max(setting) FROM catalogue.pg_settings WHERE name = lower(asked))

set_config(name, value, is_local) AS value

oid_of_regclass(given) AS (SELECT max(oid) FROM catalogue.pg_class WHERE relname = given)

name_of_regclass(id) AS (SELECT max(relname) FROM catalogue.pg_class WHERE oid = id)

to_regclass(given) AS (SELECT max(oid) FROM catalogue.pg_class WHERE relname = given)

oid_of_regtype(given) AS (SELECT max(type_oid) FROM catalogue.type_names WHERE given IN (sql_name,
    name))

name_of_regtype(id) AS (SELECT max(sql_name) FROM catalogue.type_names WHERE type_oid = id)

to_regtype(given) AS (SELECT max(type_oid) FROM catalogue.type_names WHERE given IN (sql_name, name))

oid_of_regnamespace(given) AS (SELECT max(oid) FROM catalogue.pg_namespace WHERE nspname = given)

name_of_regnamespace(id) AS (SELECT max(nspname) FROM catalogue.pg_namespace WHERE oid = id)

quote_ident(name) AS CASE WHEN regexp_full_match(name, '[a-z_][a-z0-9_]*') THEN name ELSE '"' ||
    replace(name, '"', '""') || '"' END

quote_literal(given) AS '''' || replace(given::VARCHAR, '''', '''''') || ''''

_pg_expandarray(items) AS unnest(list_transform(items, lambda item, place: {'x': item, 'n':
    place::INTEGER}))

array_remove(items, gone) AS list_filter(items, lambda item: item IS DISTINCT FROM gone)

array_lower(items, dimension) AS CASE WHEN len(items) > 0 THEN 1 END

array_upper(items, dimension) AS CASE WHEN len(items) > 0 THEN len(items)::INTEGER END

to_char(given, pattern) AS given::VARCHAR

inet_server_addr() AS NULL::VARCHAR

inet_server_port() AS NULL::INTEGER

txid_current() AS 1::BIGINT

element_text(item, kind) AS CASE WHEN item IS NULL THEN 'NULL' WHEN kind = 'BOOLEAN[]' THEN item[1:1]
    WHEN kind = 'DOUBLE[]' THEN regexp_replace(item, '\.0$', '') WHEN starts_with(kind, 'TIMESTAMP') THEN
    '"' || item || '+00"' WHEN regexp_matches(item, '^$|[{}",\\\s]') OR upper(item) = 'NULL' THEN '"' ||
    regexp_replace(item, '(["\\])', '\\\1', 'g') || '"' ELSE item END

array_text(given) AS '{' || array_to_string(list_transform(json_extract_string(to_json(given)::VARCHAR,
    '$[*]'), lambda item: element_text(item, typeof(given))), ',') || '}'

double_text(given) AS CASE given WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity' WHEN 'nan' THEN
    'NaN' ELSE regexp_replace(given, '\.0$', '') END

as_text(given) AS CASE WHEN regexp_matches(typeof(given), '^(STRUCT|MAP)\(|\]\[\]$|^JSON\[\]$') THEN
    to_json(given)::VARCHAR WHEN ends_with(typeof(given), '[]') THEN array_text(given) WHEN typeof(given)
    IN ('DOUBLE', 'FLOAT') THEN double_text(given::VARCHAR) WHEN starts_with(typeof(given), 'TIMESTAMP')
    THEN given::VARCHAR || '+00' WHEN typeof(given) = 'BLOB' THEN '\x' || lower(hex(TRY_CAST(given::VARCHAR
    AS BLOB))) ELSE given::VARCHAR END
""".replace("$SERVER_VERSION", SERVER_VERSION).split("\n\n")
]

_INDEXES = (
    "index_definitions AS SELECT i.indexrelid AS index_oid, list(a.attname ORDER BY a.attnum) AS columns, "
    "'CREATE UNIQUE INDEX ' || min(x.relname) || ' ON ' || min(c.relname) || ' USING btree (' || "
    "string_agg(a.attname, ', ' ORDER BY a.attnum) || ')' AS indexdef, "
    "'PRIMARY KEY (' || string_agg(a.attname, ', ' ORDER BY a.attnum) || ')' AS definition "
    "FROM catalogue.pg_index i JOIN catalogue.pg_class c ON c.oid = i.indrelid "
    "JOIN catalogue.pg_class x ON x.oid = i.indexrelid "
    "JOIN catalogue.pg_attribute a ON a.attrelid = c.oid AND list_contains(i.indkey, a.attnum) GROUP BY 1"
)
_VIEWS = (
    "view_definitions AS SELECT c.oid AS view_oid, v.view_definition AS definition FROM catalogue.pg_class c "
    "JOIN catalogue.pg_namespace n ON n.oid = c.relnamespace JOIN information.views v "
    "ON v.table_schema = n.nspname AND v.table_name = c.relname"
)
DERIVED = ("type_names AS SELECT * FROM given_type_names", _INDEXES, _VIEWS)
"""Tables that macros look into. The first is filled once, the others with the catalogue."""


def type_names() -> pa.Table:
    """oid, name, and the name that format_type gives."""
    rows = [{"type_oid": one.oid, "name": one.name, "sql_name": one.sql} for one in types.TYPES.values()]
    return pa.Table.from_pylist(
        rows, pa.schema({"type_oid": pa.uint32(), "name": pa.string(), "sql_name": pa.string()})
    )
