"""Files to raw rows: what was found, not yet checked.

A raw row has

| column | type   | holds                                                                                   |
|--------|--------|-----------------------------------------------------------------------------------------|
| value  | struct | the declared columns by declared name: text from CSV and JSON, Parquet's types from it   |
| record | string | the row for the quarantine: JSON text of all its columns, or the line where it is broken |
| file   | string | where it came from                                                                      |
| broken | string | why it is no row at all; NULL where it is one                                           |

Nothing is inferred from data: text stays text until the declared type reads it, so ``007`` stays a STRING
and a DECIMAL never passes through a float. Columns are matched by name, and where none is equal, regardless
of case.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType, StructField, StructType

from engine.model.source import Schema
from spark_jobs.errors import InputMismatch
from spark_jobs.failures import reading
from spark_jobs.sources.settings import SourcesSettings
from spark_jobs.types import can_become
from topics.members import folded

_FILE = "_metadata.file_path"


def read(session: SparkSession, settings: SourcesSettings, schema: Schema) -> DataFrame:
    """The raw rows of the inputs. Raises InputMissing, InputUnreadable, InputMismatch."""
    return read_files(session, settings, schema, settings.inputs)


def read_files(
    session: SparkSession, settings: SourcesSettings, schema: Schema, paths: Sequence[str]
) -> DataFrame:
    """The raw rows of these files, as the settings say. Raises as :func:`read`."""
    with reading(tuple(paths)):
        if settings.format == "csv":
            return _csv(session, settings, schema, list(paths))
        if settings.format == "json":
            lines = session.read.text(list(paths)).select("value", F.col(_FILE).alias("file"))
            return raw_of_json(lines, schema)
        table = session.read.parquet(*paths)
        return raw_of(table, schema, file=F.col(_FILE))


def raw_of(
    table: DataFrame, schema: Schema, *, file: Column | None = None, line: str | None = None
) -> DataFrame:
    """A table's raw rows.

    line: the column that holds the line of what could not be split into columns, NULL else.
    Raises InputMismatch: declared columns are not there, or of a type that can't become theirs.
    """
    found = [f for f in table.schema.fields if f.name != line]
    names = matched(schema, [f.name for f in found])
    types = {f.name: f.dataType for f in found}
    wrong = [
        f"{name} is {types[name].simpleString()} and can't become {declared.type}"
        for declared, name in zip(schema, names, strict=True)
        if not can_become(types[name], declared.type)
    ]
    if wrong:
        raise InputMismatch(
            f"columns do not fit the stream: {'; '.join(wrong)}", hint="declare them as they are"
        )
    record = F.to_json(F.struct(*(column(f.name) for f in found)))
    broken: Column = F.lit(None)
    if line is not None:
        record = F.coalesce(column(line), record)
        broken = F.when(
            column(line).isNotNull(), F.lit(f"the line does not have {len(found)} columns as the header has")
        )
    return table.select(
        F.struct(*(column(name).alias(f.name) for f, name in zip(schema, names, strict=True))).alias("value"),
        record.alias("record"),
        (file if file is not None else F.lit(None).cast("string")).alias("file"),
        broken.cast("string").alias("broken"),
    )


def raw_of_json(lines: DataFrame, schema: Schema) -> DataFrame:
    """Raw rows of JSON lines, columns ``value`` and ``file``; blank lines are none.

    A line must be one object and nothing else, its members' names all different. A member becomes its text, a
    number with all digits (one with an exponent is read as a double first); one that is missing is NULL. A
    column is the member of its name, else the one member whose name differs in letter case alone; where there
    are several such, the line is broken.
    """
    line = F.col("record")
    # Spark's parsers stop at the end of the first value. In brackets the rest of a line is seen as well; and
    # a VARIANT keeps the digits of numbers, which from_json passes through a double.
    objects = F.try_parse_json(F.concat(F.lit("["), line, F.lit("]"))).try_cast("array<map<string,variant>>")
    rows = lines.select(F.col("value").alias("record"), "file").where(F.trim(line) != "")
    read = rows.select("*", F.when(F.size(objects) == 1, objects[0]).alias("members"))
    members = F.col("members")
    named = {f.name: _member(members, f.name, schema) for f in schema}
    broken = F.when(members.isNull(), F.lit("the line is not one JSON object"))
    for name, (_, is_ambiguous) in named.items():
        reason = F.lit(f"members differ from column {name} in letter case alone")
        broken = broken.when(is_ambiguous, reason)
    return read.select(
        F.struct(*(value.try_cast("string").alias(name) for name, (value, _) in named.items())).alias(
            "value"
        ),
        "record",
        "file",
        broken.cast("string").alias("broken"),
    )


def _member(members: Column, name: str, schema: Schema) -> tuple[Column, Column]:
    """The member of a map of them that is a column, and whether several are alike."""
    exact = members[name]
    if sum(folded(f.name) == folded(name) for f in schema) > 1:
        return exact, F.lit(False)
    near = F.map_values(F.map_filter(members, lambda member, _: F.lower(member) == name.lower()))
    is_exact = F.array_contains(F.map_keys(members), name)
    return F.when(is_exact, exact).when(F.size(near) == 1, near[0]), ~is_exact & (F.size(near) > 1)


def _csv(session: SparkSession, settings: SourcesSettings, schema: Schema, paths: list[str]) -> DataFrame:
    options = {"header": "true", "sep": settings.delimiter, "nullValue": settings.null_text, "escape": '"'}
    names = session.read.options(**options).csv(paths).columns
    matched(schema, names)
    line = _unused("_broken", names)
    shape = StructType([StructField(name, StringType()) for name in (*names, line)])
    reader = session.read.options(
        **options,
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=line,
        enforceSchema="false",  # every file's header must be the first one's
        columnPruning="false",  # else a line is only looked at as far as columns are used
        multiLine=str(not settings.split).lower(),
    )
    return raw_of(reader.schema(shape).csv(paths), schema, file=F.col(_FILE), line=line)


def matched(schema: Schema, names: Sequence[str]) -> list[str]:
    """For each declared column the name of its column in the input. Raises InputMismatch."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.casefold(), []).append(name)
    present = set(names)
    result, missing = [], []
    for declared in schema:
        close = folded.get(declared.name.casefold(), [])
        if declared.name in present:
            result.append(declared.name)
        elif len(close) == 1:
            result.append(close[0])
        else:
            missing.append(declared.name)
    if missing:
        raise InputMismatch(
            f"the input has no column {', '.join(missing)}",
            hint=f"it has {', '.join(names)}; declare the columns by these names",
        )
    return result


def column(name: str) -> Column:
    """A column by its name, whatever characters that has."""
    return F.col("`" + name.replace("`", "``") + "`")


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
