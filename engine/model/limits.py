"""Limits of the language and the engine; every one finite, every one refused with a clear error."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.source import DAY_MS


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults suit one process with a few GiB. One field a limit.

    sql_bytes_max: UTF-8 bytes of a statement. nesting_max: depth of parentheses and of expressions.
    outputs_max: selected columns. columns_max: columns of a stream. constraints_max: constraints of a
    stream, constraint_rows_max: the largest k of one. joined_sources_max: sources that the joins of a query
    read. queries_max: standing queries of an engine. window_ms_max, window_rows_max: how far
    a window may reach. snapshot_rows_max: rows of one answer. intermediate_rows_max: rows of a scan on the
    way to one. pending_rows_max: rows a stream may hold above NOW. held_rows_max: rows a source holds back
    beyond its own retention for queries whose other sources lag behind. superseded_rows_max: versions of a
    table's rows that nobody may ask for any more and that stay all the same (or as many as are needed, if
    that is more). join_candidates_max: pairs of rows that the condition of one join is looked at for.
    composites_max: combinations of rows that are kept of one join. promising_entries_max: entries of
    the promising set that queries with a preference share, promising_pairs_max: pairs that these found and
    hold. preference_work_max: units of work that an
    answer with a preference may take where nothing is kept for it. summary_zones_max: zones that a summary
    which comes has to make of retained rows (some 50 us each). changes_max: changes of one answer in one
    step, and rows on the way to them. archive_rows_max: rows of history that one answer from scratch takes
    in. analyze_rows_max: rows of all windows of a query that EXPLAIN ANALYZE evaluates.
    """

    sql_bytes_max: int = 64 * 1024
    nesting_max: int = 64
    outputs_max: int = 1_000
    columns_max: int = 1_000
    constraints_max: int = 16
    constraint_rows_max: int = 1_000_000
    joined_sources_max: int = 8
    queries_max: int = 200_000
    window_ms_max: int = 3_660 * DAY_MS
    window_rows_max: int = 100_000_000
    snapshot_rows_max: int = 1_000_000
    intermediate_rows_max: int = 50_000_000
    pending_rows_max: int = 50_000_000
    held_rows_max: int = 20_000_000
    superseded_rows_max: int = 4_096
    join_candidates_max: int = 100_000_000
    composites_max: int = 20_000_000
    promising_entries_max: int = 1_000_000
    promising_pairs_max: int = 10_000_000
    preference_work_max: int = 1_000_000
    summary_zones_max: int = 20_000
    changes_max: int = 1_000_000
    archive_rows_max: int = 20_000_000
    analyze_rows_max: int = 20_000_000


DEFAULT_LIMITS = Limits()
