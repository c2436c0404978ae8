"""Materialized views: a view, and a query of its name that keeps its answer.

    CREATE MATERIALIZED VIEW late AS SELECT ...      CREATE VIEW late AS SELECT ...
                                                     SELECT * FROM late, named late

Both are what they are elsewhere: the view is inserted wherever it is named, and operators that followed
queries have in common, its query among them, work once for all. A query that has its name and this very
SELECT is taken for it.
"""

from __future__ import annotations

from broker.node.directory import Directory


def kept_text(view: str, emits: str = "") -> str:
    """The text of the query that keeps the answer of a view. emits: its EMIT CHANGES."""
    return f'SELECT * FROM "{view}" {emits}'.rstrip()


def materialized_by(directory: Directory, view: str) -> str | None:
    """The id of the query that keeps the answer of a view; None: it is a view alone. O(1)."""
    there = directory.views.get(view)
    adopted = None if there is None else query_of(directory, view, there.derived.sql)
    if adopted is not None:
        return adopted
    query_id = directory.queries.names.id_of(view)
    entry = None if query_id is None else directory.queries.get(query_id)
    if entry is None or entry.sql is None:
        return None
    text, begin = entry.sql, kept_text(view)
    return query_id if text == begin or text.startswith(f"{begin} ") else None


def query_of(directory: Directory, name: str, select: str) -> str | None:
    """The id of the query of this name whose text is that SELECT. O(1)."""
    query_id = directory.queries.names.id_of(name)
    entry = None if query_id is None else directory.queries.get(query_id)
    if entry is None or entry.sql is None or entry.sql.strip().rstrip(";").rstrip() != select:
        return None
    return query_id
