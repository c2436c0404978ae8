"""Errors as PostgreSQL tells them: SQLSTATE by code, message, hint, and the place in the text.

Source: PostgreSQL's documentation, "PostgreSQL Error Codes", "Error and Notice Message Fields".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.postgres import messages
from tureen.errors import TureenError

SQLSTATES = {
    "protocol_violation": "08P01",
    "not_unicode": "22021",
    "authentication_failed": "28P01",
    "not_allowed": "42501",
    "handle_needed": "42501",
    "syntax": "42601",
    "query_refused": "42000",
    "unknown_source": "42P01",
    "unknown_summary": "42704",
    "unknown_column": "42703",
    "type_mismatch": "42804",
    "not_supported": "0A000",
    "parameters_refused": "22023",
    "option_refused": "22023",
    "value_refused": "22P02",
    "unknown_query": "42P01",
    "query_paused": "55000",
    "query_not_running": "55000",
    "name_in_use": "42P07",
    "handle_in_use": "42710",
    "source_conflict": "42P07",
    "source_is_read": "2BP01",
    "source_of_another_kind": "42809",
    "bad_record": "22P02",
    "bad_request": "22023",
    "limit_exceeded": "54000",
    "too_many_connections": "53300",
    "too_busy": "53000",
    "memory_budget": "53200",
    "store_full": "53100",
    "kafka_unavailable": "58000",
    "broker_unavailable": "57P03",
    "shard_held": "57P03",
    "being_prepared": "57P03",
    "request_timeout": "57P05",
    "canceled": "57014",
    "internal_error": "XX000",
    "transaction_failed": "25P02",
    "read_only_transaction": "25006",
    "unknown_statement": "26000",
    "unknown_cursor": "34000",
    "duplicate_statement": "42P05",
    "duplicate_cursor": "42P03",
    "too_many_statements": "53400",
    "evaluation_refused": "42000",
    "unknown_function": "42883",
    "bad_value": "22P02",
    "must_refetch": "72000",
    "position_refused": "22023",
    "too_many_feeds": "53300",
    "division_by_zero": "22012",
    "unknown_setting": "42704",
}
"""By the code of an error. Others are 42000: the statement was understood, and refused."""


class Canceled(TureenError):
    """The client asked to cancel."""

    code = "canceled"

    def __init__(self, why: str = "user request") -> None:
        super().__init__(f"canceling statement due to {why}")


class TransactionFailed(TureenError):
    """A statement of the transaction failed."""

    code = "transaction_failed"

    def __init__(self) -> None:
        super().__init__(
            "current transaction is aborted, commands ignored until end of transaction block",
            hint="ROLLBACK ends it",
        )


class ReadOnlyTransaction(TureenError):
    """A statement that changes something, in a transaction that only reads."""

    code = "read_only_transaction"

    def __init__(self) -> None:
        super().__init__("cannot change anything in a read-only transaction")


class SourceIsRead(TureenError):
    """DROP of what others read, or refer to."""

    code = "source_is_read"


class SourceOfAnotherKind(TureenError):
    """DROP STREAM of a table, or the like."""

    code = "source_of_another_kind"


def refused(fields: Mapping[str, Any]) -> TureenError:
    """An outcome of HTTP that is an error, told by its fields."""
    error = TureenError(
        str(fields.get("message") or "it was refused"),
        hint=fields.get("hint"),
        line=fields.get("line"),
        column=fields.get("column"),
    )
    vars(error)["code"] = str(fields.get("code") or "query_refused")
    return error


def fields_of(error: TureenError, sql: str = "", offset: int = 0, severity: str = "ERROR") -> bytes:
    """An ErrorResponse. sql, offset: the text in which line and column of the error count, and how many
    characters of what the client sent stand before it.
    """
    found = [
        ("S", severity),
        ("V", severity),
        ("C", SQLSTATES.get(error.code, "42000")),
        ("M", error.message),
    ]
    if error.hint:
        found.append(("H", error.hint))
    place = _position(error, sql)
    if place is not None:
        found.append(("P", str(place + offset)))
    return messages.error(found)


def notice_of(message: str, hint: str | None = None, severity: str = "NOTICE") -> bytes:
    """A NoticeResponse. severity: NOTICE or WARNING."""
    code = "01000" if severity == "WARNING" else "00000"
    fields = [("S", severity), ("V", severity), ("C", code), ("M", message)]
    return messages.notice(fields + ([("H", hint)] if hint else []))


def _position(error: TureenError, sql: str) -> int | None:
    """Characters from 1; None where the error has no place in the text."""
    if not sql or error.line is None or error.column is None:
        return None
    lines = sql.split("\n")
    if not 1 <= error.line <= len(lines):
        return None
    return sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column
