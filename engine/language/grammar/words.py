"""Words with a fixed meaning, and what is said of those that are not supported."""

from __future__ import annotations

#: Words that cannot be a name unless quoted.
RESERVED = frozenset(
    [
        "SELECT",
        "FROM",
        "WHERE",
        "AND",
        "OR",
        "NOT",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "IN",
        "IS",
        "LIKE",
        "ILIKE",
        "BETWEEN",
        "NULL",
        "TRUE",
        "FALSE",
        "AS",
        "BEGIN",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "OFFSET",
        "FETCH",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "JOIN",
        "INNER",
        "LEFT",
        "RIGHT",
        "FULL",
        "CROSS",
        "NATURAL",
        "ON",
        "USING",
        "DISTINCT",
        "CAST",
        "TRY_CAST",
        "WITH",
        "EMIT",
        "INTO",
        "QUALIFY",
        "EXISTS",
        "ESCAPE",
        "RETAIN",
        "OVER",
        "LATERAL",
        "TABLESAMPLE",
        "ALL",
        "ANY",
        "SOME",
    ]
)

#: Words that mean something by their place, and are names elsewhere.
BY_PLACE = frozenset(
    [
        "ADVANCE",
        "ALTER",
        "ANALYZE",
        "ANTI",
        "ASC",
        "ASOF",
        "ASYMMETRIC",
        "AT",
        "BY",
        "CASCADE",
        "CHANGES",
        "CLOSE",
        "CLUSTERED",
        "COLLAPSE",
        "CONSTRAINT",
        "CREATE",
        "CUBE",
        "CURRENT",
        "DESC",
        "DESCRIBE",
        "DESCRIPTOR",
        "DOWN",
        "DROP",
        "DSTREAM",
        "EXCLUDE",
        "EXPLAIN",
        "EXTENDED",
        "FACTOR",
        "FADE",
        "FILTER",
        "FINAL",
        "FIRST",
        "FOLLOWING",
        "FOR",
        "FUNCTIONS",
        "GRANULARITY",
        "GROUPING",
        "GROUPS",
        "HOPPING",
        "IF",
        "IGNORE",
        "INSERT",
        "INTERVAL",
        "ISTREAM",
        "KEY",
        "LAST",
        "LIST",
        "MANY",
        "MATERIALIZED",
        "NEXT",
        "NO",
        "NON",
        "NOW",
        "NULLS",
        "ONE",
        "ONLY",
        "ORDERED",
        "ORDINALITY",
        "OTHERS",
        "OUTER",
        "PARTITION",
        "PATH",
        "PAUSE",
        "PERCENT",
        "PRECEDING",
        "PREFERENCE",
        "PRIMARY",
        "QUERIES",
        "QUERY",
        "RANGE",
        "REFERENCES",
        "RELEASE",
        "RENAME",
        "REPLACE",
        "RESPECT",
        "RESUME",
        "RETROACTIVE",
        "ROLLUP",
        "ROW",
        "ROWS",
        "RSTREAM",
        "SAMPLE",
        "SEMI",
        "SET",
        "SETS",
        "SETTINGS",
        "SHOW",
        "SIMILAR",
        "SIZE",
        "SLIDE",
        "SOURCES",
        "STREAM",
        "STREAMS",
        "SUMMARIES",
        "SUMMARY",
        "SYMMETRIC",
        "TABLE",
        "TABLES",
        "TERMINATE",
        "TIES",
        "TOPIC",
        "TIME",
        "TO",
        "TUMBLING",
        "UNBOUNDED",
        "UNIQUE",
        "UNKNOWN",
        "VALUES",
        "VIEW",
        "VIEWS",
        "WEIGHTED",
        "WINDOW",
        "WITHIN",
        "ZONE",
    ]
)

#: Words between two queries.
SET_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT")

#: First words of the clauses of a query that stand before what is said of all of it.
EARLIER = (
    "WHERE",
    "GROUP",
    "HAVING",
    "QUALIFY",
    "BEGIN",
    *SET_OPERATIONS,
    "ORDER",
    "LIMIT",
    "FETCH",
    "OFFSET",
)

#: What may follow a source in SQL and is not supported: word -> (what it is, what to write instead).
CLAUSES_REFUSED: dict[str, tuple[str, str]] = {
    "SORT": ("SORT BY", "write ORDER BY"),
    "CLUSTER": ("CLUSTER BY", "write ORDER BY"),
    "MINUS": ("MINUS", "write EXCEPT"),
    "LATERAL": ("LATERAL VIEW", "write CROSS JOIN UNNEST(s.a) AS t(x)"),
    "WITHIN": (
        "WITHIN",
        "give each stream a window: a [RANGE 5 MINUTES] JOIN b [RANGE 5 MINUTES] ON ...",
    ),
    "INTO": ("INTO without EMIT", "write EMIT CHANGES INTO name at the end of the query"),
    "WINDOW": (
        "WINDOW",
        "write WINDOW TUMBLING (SIZE 1 HOUR), HOPPING or SESSION, or slide with [RANGE 1 HOUR] after s",
    ),
    "TABLESAMPLE": ("TABLESAMPLE", "write a percentage of the rows, as in FROM s SAMPLE(10)"),
    "SAMPLE": ("SAMPLE here", "write it after a stream with a percentage, as in FROM s SAMPLE(10)"),
    "FOR": (
        "FOR here",
        "AS OF s.at stands behind a NON RETROACTIVE table, FROM a TO b ends a SELECT that is asked once",
    ),
    "PIVOT": ("PIVOT", "write an aggregate with FILTER (WHERE ...) for each column"),
    "UNPIVOT": ("UNPIVOT", "register one query for each column"),
}

#: Statements of SQL that are not supported: first word -> what to do instead.
STATEMENTS_REFUSED: dict[str, str] = {
    "UPDATE": "a stream only grows; of a table produce a record with the same key to its topic",
    "DELETE": "a stream only grows, RETAIN says how long rows stay; of a table produce a key without a value",
    "MERGE": "produce records to the stream's topic",
    "REGISTER": "REGISTER is a word of `tureen sql`; elsewhere register the SELECT itself",
    "TABLE": "write SELECT * FROM the stream",
    "SET": "options are part of a registration or of the broker's settings",
    "USE": "a stream is named without a database",
    "GRANT": "a handle is what grants the right to an answer",
    "REVOKE": "unregister the query by its handle",
    "BEGIN": "there are no transactions; a window's BEGIN and END come after WHERE",
    "START": "there are no transactions",
    "COMMIT": "there are no transactions",
    "ROLLBACK": "there are no transactions",
    "COPY": "produce records to the stream's topic",
    "CALL": "write a SELECT",
    "EXECUTE": "write a SELECT",
    "PREPARE": "write a SELECT",
    "FROM": "begin with SELECT: SELECT * FROM the stream",
    "PRINT": "tureen records TOPIC shows its newest records; SELECT * FROM s [ROWS 10] a stream's",
    "SUBSCRIBE": "register SELECT * FROM the stream, then follow its changes",
    "TAIL": "register SELECT * FROM the stream, then follow its changes",
    "REFRESH": "an answer is always current",
    "PUT": "produce records to the stream's topic",
    "EMIT": "write it after a query: SELECT ... EMIT CHANGES",
}

#: Words and functions that mean the current instant.
A_WINDOW_INSTEAD = (
    "use a window behind the stream: FROM s [RANGE 10 MINUTES], or without brackets "
    "FROM s BEGIN NOW - 10 MINUTES END NOW"
)
CLOCKS = frozenset(
    [
        "NOW",
        "CURRENT_TIMESTAMP",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "LOCALTIMESTAMP",
        "GETDATE",
        "SYSDATE",
        "TODAY",
    ]
)

INSTANT_CLOCKS = frozenset(["NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "GETDATE", "SYSDATE", "MZ_NOW"])
"""Those that mean an instant, as NOW() does; the others mean a day or a time of the day."""

#: What has no members.
NOT_NESTED = (
    "only a STRUCT has members: declare the column as one, or write PATH '$.member.inner' behind its type"
)

#: Functions that make rows of the elements of arrays.
ROWS_OF_ELEMENTS = (
    "UNNEST",
    "EXPLODE",
    "FLATTEN",
    "JSON_TABLE",
    "JSON_ARRAY_ELEMENTS",
    "JSONB_ARRAY_ELEMENTS",
)

#: Functions of other systems: what to write instead.
FUNCTIONS_REFUSED: dict[str, str] = {
    "ISTREAM": "write SELECT ISTREAM(a, b) FROM ..., or ISTREAM (SELECT ...)",
    "DSTREAM": "write SELECT DSTREAM(a, b) FROM ..., or DSTREAM (SELECT ...)",
    "RSTREAM": "write SELECT RSTREAM(a, b) FROM ..., or RSTREAM (SELECT ...)",
    **dict.fromkeys(
        ROWS_OF_ELEMENTS,
        "write it in FROM: s CROSS JOIN UNNEST(s.a) AS t(x), of JSON UNNEST(CAST(s.j AS ARRAY<JSON>)); to "
        "look for an element x = ANY(a)",
    ),
    "RANDOM": "it would change an answer without new rows",
    "RAND": "it would change an answer without new rows",
    "UUID": "it would change an answer without new rows",
    **dict.fromkeys(
        ("CURRENT_ROW_TIMESTAMP", "SYSTIMESTAMP", "CLOCK_TIMESTAMP", "CURRENT_WATERMARK"),
        A_WINDOW_INSTEAD,
    ),
    "PROCTIME": "a stream without a timestamp column runs in arrival time",
    "REGEXP_MATCH": "write REGEXP_EXTRACT(s, pattern, 1), (REGEXP_MATCH(s, pattern))[1] or REGEXP_LIKE",
    "REGEXP_SUBSTR": "write REGEXP_EXTRACT(s, pattern)",
    "SUBSTRING_INDEX": "write SPLIT_PART(s, delimiter, n)",
    "FORMAT": "join the parts: a || b, or CONCAT(a, b)",
    "PRINTF": "join the parts: a || b, or CONCAT(a, b)",
    "LOCATE": "write POSITION(part, s)",
    "CHARINDEX": "write POSITION(part, s)",
    "ISNULL": "write x IS NULL",
    "WINDOW": "write FROM TUMBLE(s, INTERVAL '5' MINUTE), or HOP or SESSION, and GROUP BY window_start",
    "STRINGTOTIMESTAMP": "write TO_TIMESTAMP(s, 'yyyy-MM-dd HH:mm:ss')",
    "TIMESTAMPTOSTRING": "write DATE_FORMAT(t, 'yyyy-MM-dd HH:mm:ss')",
    "DATESUB": "write TIMESTAMPDIFF(DAY, a, b), or t - INTERVAL '5' DAY",
    "TIMESTAMP_DIFF": "write TIMESTAMPDIFF(DAY, a, b)",
    "JUSTIFY_HOURS": "leave it out: an INTERVAL has a fixed length, and a day 24 hours",
    **dict.fromkeys(("JUSTIFY_DAYS", "JUSTIFY_INTERVAL"), "an INTERVAL has a fixed length, and no months"),
    "AGE": "write TIMESTAMPDIFF(MONTH, b, a), or a - b, which has a fixed length",
    "EXTRACTJSONFIELD": "write JSON_EXTRACT_STRING(j, '$.name')",
    "GET_JSON_OBJECT": "write JSON_EXTRACT_STRING(j, '$.name')",
    "FROM_JSON": "write CAST(s AS JSON), or CAST(s AS STRUCT<name STRING>)",
    "GENERATE_SERIES": "write it in FROM: SELECT x FROM GENERATE_SERIES(1, 10) AS x",
}

#: Columns that other systems give every row: what to write instead.
COLUMNS_REFUSED: dict[str, str] = {
    "rowkey": "the key of a record is no column of a stream; declare a member of the JSON object",
    "rowpartition": "the place of a record in its topic is no column",
    "rowoffset": "the place of a record in its topic is no column",
    **dict.fromkeys(
        ("windowstart", "windowend"),
        "write window_start or window_end, of WINDOW TUMBLING or FROM TUMBLE(s, ...)",
    ),
    **dict.fromkeys(
        ("istream", "dstream", "rstream"), "put all columns in brackets, as in SELECT ISTREAM(a, b) FROM s"
    ),
}

#: Names that other systems give the time of a row.
ROW_TIMES = ("rowtime", "_rowtime", "event_time", "eventtime", "proctime", "_timestamp")
