"""The answer of one query with typed columns: rows of JSON unfolded.

What JSON tells are BOOLEAN, BIGINT, DOUBLE, STRING and arrays; DECIMAL, DATE and TIMESTAMP are text in it and
stay so, unless their types are named. All rows of a query agree, since its SELECT does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from spark_jobs.compact.versions import COPIES, RECORD, VALID_FROM, VALID_TO
from tureen.errors import SettingsError

OWN = (COPIES, VALID_FROM, VALID_TO, *RECORD)
"""Columns that stand behind the query's own."""
_ALWAYS = {
    "allowNonNumericNumbers": "true",
    "mode": "FAILFAST",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSX",
}


def of_query(versions: DataFrame, query_id: str) -> DataFrame:
    """Versions (of history or current) of one query that have a row."""
    return versions.where((F.col("query_id") == query_id) & (F.col(COPIES) != 0))


def columns_of(versions: DataFrame, given: Mapping[str, str]) -> StructType:
    """The columns that rows of JSON have, ordered as they first stand there; given: types by name, as DDL, of
    which those count that these rows have.

    Raises SettingsError: a type that is none, a column named like ours.
    """
    session: Any = versions.sparkSession
    texts = versions.select("row")._jdf
    strings = getattr(texts, "as")(session._jvm.org.apache.spark.sql.Encoders.STRING())
    found = DataFrame(session._jsparkSession.read().json(strings), session).schema
    first = versions.select(F.expr("json_object_keys(row)")).first()
    place = {name: number for number, name in enumerate(first[0] if first else ())}
    fields = {
        field.name: field for field in sorted(found, key=lambda field: place.get(field.name, len(place)))
    }
    for name, text in given.items():
        type_ = _type(name, text)
        if name in fields:
            fields[name] = StructField(name, type_)
    if clash := sorted({name.lower() for name in fields} & set(OWN)):
        raise SettingsError(
            f"the query's column {clash[0]} has the name of a column for the validity of rows",
            hint="name it otherwise by AS in the query, or read the shared table's JSON",
        )
    return StructType(list(fields.values()))


def unfolded(versions: DataFrame, columns: StructType) -> DataFrame:
    """The rows with these columns, then ours."""
    row = F.from_json("row", columns, _ALWAYS).alias("row")
    own = [name for name in OWN if name in versions.columns]
    names = [F.col("row").getField(field.name).alias(field.name) for field in columns]
    return versions.select(row, *own).select(*names, *own)


def _type(name: str, text: str) -> DataType:
    try:
        found = DataType.fromDDL(text)
    except PySparkException:
        raise SettingsError(
            f"{text!r} is no type for column {name}", hint="as TIMESTAMP, DATE, DECIMAL(9, 2), DOUBLE"
        ) from None
    if isinstance(found, StructType) or (
        isinstance(found, ArrayType) and isinstance(found.elementType, StructType)
    ):
        raise SettingsError(f"{text!r} is no type that a column of an answer has")
    return found
