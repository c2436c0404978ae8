"""Statements of a connection itself: transactions, settings, cursors, and what tools send to reset one.

A transaction here is what clients expect of one, not a unit of work: each statement takes effect at once. So
ROLLBACK tells, as a warning, when something was changed that stays so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from broker.postgres.settings import SessionSettings, duration_ms
from tureen.errors import NotSupported, SyntaxRefused
from tureen.statements import keyword

_LISTS = {"QUERIES", "STREAMS", "TABLES", "VIEWS", "SOURCES", "FUNCTIONS", "SUMMARIES", "EXTENDED"}
"""What SHOW lists; with another word it shows a setting."""
_WORDS = {
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "SAVEPOINT",
    "RELEASE",
    "SET",
    "RESET",
    "DISCARD",
    "DEALLOCATE",
    "CLOSE",
    "DECLARE",
    "FETCH",
    "MOVE",
    "LISTEN",
    "UNLISTEN",
    "REFRESH",
}
ENDS = ("COMMIT", "END", "ROLLBACK", "ABORT")
"""What is understood in a transaction that failed."""


def is_command(sql: str) -> bool:
    """Whether a statement is one of the connection itself."""
    word = keyword(sql)
    return word in _WORDS or (word == "SHOW" and words_of(sql)[1:2] != [] and words_of(sql)[1] not in _LISTS)


def words_of(sql: str) -> list[str]:
    """The first words of a statement, in capitals, without comments."""
    return re.findall(r"\w+", re.sub(r"--[^\n\r]*|/\*.*?\*/", " ", sql, flags=re.DOTALL).upper())[:8]


@dataclass(slots=True)
class Transaction:
    """status: I idle, T in a transaction, E in one that failed. reads_only: it changes nothing. changed:
    something was changed in it.
    """

    status: str = "I"
    reads_only: bool = False
    changed: bool = False

    def fail(self) -> None:
        """A statement failed."""
        if self.status == "T":
            self.status = "E"


@dataclass(frozen=True, slots=True)
class Told:
    """What a command gives: its tag, a warning, or a table of one column or more."""

    tag: str
    warning: str | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


_SET = re.compile(
    r"SET\s+(?:SESSION\s+|LOCAL\s+)?(?P<name>TIME\s+ZONE|NAMES|[\w.]+)\s*(?:=|\bTO\b)?\s*(?P<value>.*)",
    re.IGNORECASE | re.DOTALL,
)


def transaction(sql: str, now: Transaction, settings: SessionSettings) -> Told | None:
    """Carry out a statement of transactions; None: it is another."""
    words = words_of(sql)
    match words[0]:
        case "BEGIN" | "START":
            warning = "there is already a transaction in progress" if now.status != "I" else None
            if now.status == "I":
                now.status, now.changed = "T", False
                now.reads_only = settings.reads_only
            text = " ".join(words)
            now.reads_only = "READ ONLY" in text or (now.reads_only and "READ WRITE" not in text)
            return Told("BEGIN" if words[0] == "BEGIN" else "START TRANSACTION", warning)
        case "COMMIT" | "END":
            failed, idle = now.status == "E", now.status == "I"
            now.status, now.reads_only = "I", False
            warning = "there is no transaction in progress" if idle else None
            return Told("ROLLBACK" if failed else "COMMIT", warning)
        case "ROLLBACK" | "ABORT":
            kept = "what was changed stays so: statements take effect at once" if now.changed else None
            if "TO" in words:
                now.status = "T" if now.status == "E" else now.status
                return Told("ROLLBACK", kept)
            idle = now.status == "I"
            now.status, now.reads_only, now.changed = "I", False, False
            return Told("ROLLBACK", "there is no transaction in progress" if idle else kept)
        case "SAVEPOINT" | "RELEASE":
            return Told(words[0])
    return None


def setting(sql: str, now: Transaction, settings: SessionSettings) -> Told | None:
    """Carry out SET, RESET, SHOW, DISCARD, LISTEN and REFRESH; None: it is another.

    Raises UnknownSetting, NotSupported.
    """
    words = words_of(sql)
    match words[0]:
        case "SET":
            return _set(sql, words, now, settings)
        case "RESET":
            settings.reset(None if words[1:] == ["ALL"] else sql.split()[1].rstrip(";"))
            return Told("RESET")
        case "SHOW":
            return _show(words, settings)
        case "DISCARD":
            settings.reset(None)
            return Told("DISCARD " + " ".join(words[1:2]))
        case "REFRESH":
            return Told("REFRESH MATERIALIZED VIEW")  # its answer is kept
        case "UNLISTEN":
            return Told("UNLISTEN")
        case "LISTEN":
            raise NotSupported(
                "there are no notifications", hint="changes of queries come over HTTP, or Kafka"
            )
    return None


def _set(sql: str, words: list[str], now: Transaction, settings: SessionSettings) -> Told:
    if "TRANSACTION" in words:
        text = " ".join(words)
        if "READ ONLY" in text or "READ WRITE" in text:
            is_read_only = "READ ONLY" in text
            if "CHARACTERISTICS" in text:
                settings.set("default_transaction_read_only", "on" if is_read_only else "off")
            else:
                now.reads_only = is_read_only
        return Told("SET")
    found = _SET.fullmatch(sql.strip().rstrip(";"))
    if found is None or not found["value"].strip():
        raise SyntaxRefused(
            "this SET is not understood", hint="SET statement_timeout = '5s'", line=1, column=1
        )
    name = {"TIME ZONE": "timezone", "NAMES": "client_encoding"}.get(
        " ".join(found["name"].upper().split()), found["name"]
    )
    value = found["value"].strip()
    if value.upper() == "DEFAULT":
        settings.reset(name)
    else:
        settings.set(name, value.strip("'"))
    if name.lower() == "timezone" and value.strip("'").upper() not in ("UTC", "DEFAULT", "GMT", "ETC/UTC"):
        return Told("SET", "instants are written in UTC, with +00: clients show them in their own zone")
    return Told("SET")


def _show(words: list[str], settings: SessionSettings) -> Told:
    if words[1:] == ["ALL"]:
        rows = tuple((name, value, "") for name, value in sorted(settings.all().items()))
        return Told("SHOW", columns=("name", "setting", "description"), rows=rows)
    name = {
        "TRANSACTION ISOLATION LEVEL": "transaction_isolation",
        "TIME ZONE": "timezone",
    }.get(" ".join(words[1:]), words[1].lower())
    return Told("SHOW", columns=(name,), rows=((settings.get(name),),))


_DECLARE = re.compile(
    r"DECLARE\s+(?P<name>\"(?:[^\"]|\"\")+\"|\w+)\s+(?P<options>(?:(?:NO\s+SCROLL|SCROLL|BINARY|INSENSITIVE|"
    r"ASENSITIVE)\s+)*)CURSOR\s+(?:WITH(?:OUT)?\s+HOLD\s+)?FOR\s+(?P<select>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FETCH = re.compile(
    r"(?:FETCH|MOVE)\s+(?:(?P<count>ALL|NEXT|FIRST|FORWARD\s+ALL|FORWARD\s+\d+|FORWARD|RELATIVE\s+\d+|\d+)\s+)?"
    r"(?:(?:FROM|IN)\s+)?(?P<name>\"(?:[^\"]|\"\")+\"|\w+)"
    r"(?:\s+WITH\s*\(\s*TIMEOUT\s*=?\s*(?P<timeout>'[^']*'|\w+)\s*\))?",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:CLOSE|DEALLOCATE)\s+(?:PREPARE\s+)?(\"(?:[^\"]|\"\")+\"|\w+)", re.IGNORECASE)


def unquoted(name: str) -> str:
    """A name as it is meant."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def declared(sql: str) -> tuple[str, str, bool]:
    """The name of a cursor, its SELECT, and whether its rows are binary. Raises SyntaxRefused."""
    found = _DECLARE.fullmatch(sql.strip().rstrip(";"))
    if found is None:
        raise SyntaxRefused(
            "this DECLARE is not understood", hint="DECLARE name CURSOR FOR SELECT ...", line=1, column=1
        )
    return unquoted(found["name"]), found["select"], "BINARY" in found["options"].upper()


@dataclass(frozen=True, slots=True)
class Fetched:
    """What FETCH and MOVE say: the name of a cursor, and how many rows; None: all that are left. timeout_ms:
    for how long one is waited for, where none is there; None: as long as it takes.
    """

    name: str
    count: int | None
    timeout_ms: int | None = None


def fetched(sql: str) -> Fetched:
    """Raises SyntaxRefused, UnknownSetting."""
    found = _FETCH.fullmatch(sql.strip().rstrip(";").strip())
    if found is None:
        raise SyntaxRefused(
            "this FETCH is not understood",
            hint="FETCH 100 FROM name: forward alone; of changes also WITH (timeout = '1s')",
            line=1,
            column=1,
        )
    words = (found["count"] or "1").upper().split()
    last = words[-1]
    count = None if last == "ALL" else int(last) if last.isdigit() else 1
    timeout = found["timeout"]
    return Fetched(
        unquoted(found["name"]), count, None if timeout is None else duration_ms(timeout.strip("'"))
    )


def named(sql: str) -> str | None:
    """What CLOSE and DEALLOCATE name; None: all. Raises SyntaxRefused."""
    found = _NAMED.fullmatch(sql.strip().rstrip(";").strip())
    if found is None:
        raise SyntaxRefused("a name is missing, or ALL", line=1, column=1)
    return None if found[1].upper() == "ALL" else unquoted(found[1])
