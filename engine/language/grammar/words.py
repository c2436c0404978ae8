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

#: Words between two queries.
SET_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT")

#: First words of the clauses of a query that stand before what is said of all of it.
EARLIER = ("WHERE", "GROUP", "HAVING", "BEGIN", *SET_OPERATIONS, "ORDER", "LIMIT", "FETCH", "OFFSET")

#: What may follow a source in SQL and is not supported: word -> (what it is, what to write instead).
CLAUSES_REFUSED: dict[str, tuple[str, str]] = {
    "SORT": ("SORT BY", "write ORDER BY"),
    "CLUSTER": ("CLUSTER BY", "write ORDER BY"),
    "MINUS": ("MINUS", "write EXCEPT"),
    "LATERAL": ("LATERAL", "join the sources themselves, or number rows by ROW_NUMBER() in a subquery"),
    "WITHIN": (
        "WITHIN",
        "give each stream a window: a [RANGE 5 MINUTES] JOIN b [RANGE 5 MINUTES] ON ...",
    ),
    "INTO": ("INTO without EMIT", "write EMIT CHANGES INTO name at the end of the query"),
    "WINDOW": (
        "WINDOW",
        "write FROM TUMBLE(s, INTERVAL '1' HOUR), or HOP or SESSION, or slide with [RANGE 1 HOUR] after s",
    ),
    "QUALIFY": ("QUALIFY", "select ROW_NUMBER() in a subquery and put the condition in the WHERE around it"),
    "TABLESAMPLE": ("TABLESAMPLE", "write a percentage of the rows, as in FROM s SAMPLE(10)"),
    "SAMPLE": ("SAMPLE here", "write it after a stream with a percentage, as in FROM s SAMPLE(10)"),
    "FOR": (
        "FOR SYSTEM_TIME AS OF",
        "leave it out; a NON RETROACTIVE table is joined as of the row's instant",
    ),
    "PIVOT": ("PIVOT", "write an aggregate with FILTER (WHERE ...) for each column"),
    "UNPIVOT": ("UNPIVOT", "register one query for each column"),
}

#: Statements of SQL that are not supported: first word -> what to do instead.
STATEMENTS_REFUSED: dict[str, str] = {
    "INSERT": "produce records to the stream's topic; SELECT ... EMIT CHANGES INTO name writes to a topic",
    "UPDATE": "a stream only grows; of a table produce a record with the same key to its topic",
    "DELETE": "a stream only grows, RETAIN says how long rows stay; of a table produce a key without a value",
    "MERGE": "produce records to the stream's topic",
    "TRUNCATE": "DROP STREAM, then CREATE STREAM",
    "REGISTER": "REGISTER is a word of `tureen sql`; elsewhere register the SELECT itself",
    "VALUES": "select from a stream",
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
    "PRINT": "read the topic with a Kafka client, or register SELECT * FROM the stream",
    "SUBSCRIBE": "register SELECT * FROM the stream, then follow its changes",
    "TAIL": "register SELECT * FROM the stream, then follow its changes",
    "REFRESH": "an answer is always current",
    "PUT": "produce records to the stream's topic",
    "EMIT": "write it after a query: SELECT ... EMIT CHANGES",
}

#: Words and functions that mean the current instant.
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

#: Functions of other systems: what to write instead.
FUNCTIONS_REFUSED: dict[str, str] = {
    "ISTREAM": "write SELECT ISTREAM(a, b) FROM ..., or ISTREAM (SELECT ...)",
    "DSTREAM": "write SELECT DSTREAM(a, b) FROM ..., or DSTREAM (SELECT ...)",
    "RSTREAM": "write SELECT RSTREAM(a, b) FROM ..., or RSTREAM (SELECT ...)",
    "UNNEST": "ARRAY_AGG is the only array there is: select the rows themselves",
    "EXPLODE": "ARRAY_AGG is the only array there is: select the rows themselves",
    "JSON_VALUE": "declare a column for the field you need",
    "JSON_QUERY": "declare a column for the field you need",
    "JSON_EXTRACT": "declare a column for the field you need",
    "RANDOM": "it would change an answer without new rows",
    "RAND": "it would change an answer without new rows",
    "UUID": "it would change an answer without new rows",
    **dict.fromkeys(
        ("MZ_NOW", "CURRENT_ROW_TIMESTAMP", "SYSTIMESTAMP", "CLOCK_TIMESTAMP", "CURRENT_WATERMARK"),
        "use a window, such as FROM s [RANGE 10 MINUTES] or BEGIN NOW - 10 MINUTES END NOW",
    ),
    "PROCTIME": "a stream without a timestamp column runs in arrival time",
    "IF": "write CASE WHEN condition THEN a ELSE b END",
    "IIF": "write CASE WHEN condition THEN a ELSE b END",
    "NVL": "write COALESCE(a, b)",
    "REGEXP_MATCH": "write REGEXP_EXTRACT(s, pattern, 1), (REGEXP_MATCH(s, pattern))[1] or REGEXP_LIKE",
    "REGEXP_SUBSTR": "write REGEXP_EXTRACT(s, pattern)",
    "REGEXP_REPLACE": "write REPLACE(s, old, new)",
    "STRFTIME": "write TO_CHAR(t, 'YYYY-MM-DD HH24:MI:SS')",
    "STRING_SPLIT": "write SPLIT_PART(s, delimiter, n)",
    "SPLIT": "write SPLIT_PART(s, delimiter, n)",
    "STRING_TO_ARRAY": "write SPLIT_PART(s, delimiter, n)",
    "SUBSTRING_INDEX": "write SPLIT_PART(s, delimiter, n)",
    "LEFT": "write SUBSTRING(s, 1, n)",
    "RIGHT": "write SUBSTRING(s, LENGTH(s) - n + 1)",
    **dict.fromkeys(
        ("LPAD", "RPAD", "REVERSE", "INITCAP", "REPEAT", "MD5", "SHA1", "SHA256"),
        "compute it where you fetch the answer, or add a Python function of your own",
    ),
    "FORMAT": "join the parts: a || b, or CONCAT(a, b)",
    "PRINTF": "join the parts: a || b, or CONCAT(a, b)",
    "CONCAT_WS": "write a || ',' || b",
    "LEN": "write LENGTH(s)",
    "STRPOS": "write POSITION(part, s)",
    "INSTR": "write POSITION(part, s)",
    "LOCATE": "write POSITION(part, s)",
    "CHARINDEX": "write POSITION(part, s)",
    "CONTAINS": "write s LIKE '%part%'",
    "ENDS_WITH": "write s LIKE '%part'",
    "ISNULL": "write x IS NULL",
    "NVL2": "write CASE WHEN a IS NULL THEN c ELSE b END",
    "DECODE": "write CASE x WHEN a THEN b ELSE c END",
    "TRUNC": "write FLOOR(x), or CAST(x AS BIGINT); for times DATE_TRUNC('hour', t)",
    "TRUNCATE": "write FLOOR(x), or CAST(x AS BIGINT); for times DATE_TRUNC('hour', t)",
    "LOG": "write LN(x), LN(x) / LN(10) or LN(x) / LN(base)",
    "LOG10": "write LN(x) / LN(10)",
    "LOG2": "write LN(x) / LN(2)",
    "PI": "write 3.141592653589793",
    "DIV": "write a / b, which is whole for whole numbers",
    "WINDOW": "write FROM TUMBLE(s, INTERVAL '5' MINUTE), or HOP or SESSION, and GROUP BY window_start",
    "DATE_BIN": "write DATE_TRUNC('minute', t), or FROM TUMBLE(s, INTERVAL '5' MINUTE) and window_start",
    "TIME_BUCKET": "write DATE_TRUNC('minute', t), or FROM TUMBLE(s, INTERVAL '5' MINUTE) and window_start",
    "FROM_UNIXTIME": "write TO_TIMESTAMP(seconds * 1000)",
    "TO_TIMESTAMP_LTZ": "write TO_TIMESTAMP(milliseconds)",
    "STRINGTOTIMESTAMP": "write CAST(s AS TIMESTAMP), for text such as 2024-01-31 12:00:00",
    "PARSE_TIMESTAMP": "write CAST(s AS TIMESTAMP), for text such as 2024-01-31 12:00:00",
    "PARSE_DATE": "write CAST(s AS DATE), for text such as 2024-01-31",
    "TO_DATE": "write CAST(s AS DATE), for text such as 2024-01-31",
    "TIMESTAMPTOSTRING": "write DATE_FORMAT(t, 'yyyy-MM-dd HH:mm:ss')",
    "FORMAT_TIMESTAMP": "write DATE_FORMAT(t, 'yyyy-MM-dd HH:mm:ss')",
    "FORMAT_DATE": "write DATE_FORMAT(t, 'yyyy-MM-dd')",
    "UNIX_TIMESTAMP": "write EPOCH_MS(t) / 1000",
    "UNIX_MILLIS": "write EPOCH_MS(t)",
    **dict.fromkeys(
        ("DATE_ADD", "DATEADD", "ADD_MONTHS", "TIMESTAMPADD", "TIMESTAMP_ADD"), "write t + INTERVAL '5' DAY"
    ),
    **dict.fromkeys(("DATE_SUB", "DATESUB", "TIMESTAMP_SUB"), "write t - INTERVAL '5' DAY"),
    **dict.fromkeys(
        ("DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF", "TIMESTAMP_DIFF", "AGE"),
        "write EPOCH_MS(a) - EPOCH_MS(b), which is in milliseconds",
    ),
    "CONVERT_TZ": "timestamps are UTC",
    "FROM_UTC_TIMESTAMP": "timestamps are UTC",
    "TO_UTC_TIMESTAMP": "timestamps are UTC",
    "EXTRACTJSONFIELD": "declare a column for the field you need",
    "GET_JSON_OBJECT": "declare a column for the field you need",
    "FROM_JSON": "declare a column for each field you need",
    "GENERATE_SERIES": "it has no rows of a stream: select from one",
}

#: Columns that other systems give every row: what to write instead.
COLUMNS_REFUSED: dict[str, str] = {
    "rowkey": "the key of a record is no column of a stream; declare a member of the JSON object",
    "rowpartition": "the place of a record in its topic is no column",
    "rowoffset": "the place of a record in its topic is no column",
    **dict.fromkeys(
        ("windowstart", "windowend"), "write FROM TUMBLE(s, ...), and window_start or window_end"
    ),
    **dict.fromkeys(
        ("istream", "dstream", "rstream"), "put all columns in brackets, as in SELECT ISTREAM(a, b) FROM s"
    ),
}

#: Names that other systems give the time of a row.
ROW_TIMES = ("rowtime", "_rowtime", "event_time", "eventtime", "proctime", "_timestamp")
