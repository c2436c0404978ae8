"""What a statement of a client is to be answered by: one table of kinds, decided by its text and by names.

| plan      | statements                                       | answered by                             |
|-----------|--------------------------------------------------|-----------------------------------------|
| Nothing   | blanks and comments                              | an empty answer                         |
| Command   | BEGIN, COMMIT, SET, SHOW name, FETCH, ...        | the connection itself                   |
| Whole     | SELECT * FROM query [LIMIT n], TABLE query       | a registered query's answer, as it is   |
| Evaluated | SELECT over the catalogue and registered queries | DuckDB                                  |
| Once      | SELECT over streams, tables and views            | a query, registered, asked and ended    |
|           | either of both, FOR SYSTEM_TIME FROM a TO b      | its answer over a period                |
| Carried   | CREATE, DROP, INSERT, SHOW QUERIES, EXPLAIN, ... | as POST /statements                     |
| Subscribed | SUBSCRIBE query, SUBSCRIBE (SELECT ...)         | an answer, then its changes, for good   |
| Copied    | COPY (SELECT ...) TO STDOUT                      | the rows of one of the above, as lines  |

What names mean may change: plans are made anew for each text, from trees that are kept.
Cost: microseconds for Whole and Command, else that of reading the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from broker.postgres import rewriting
from broker.postgres.commands import is_command
from broker.postgres.places import place_at
from broker.postgres.relations import Relations
from broker.postgres.rewriting import Name
from engine.language.places import did_you_mean, shown
from engine.model.period import Period
from tureen.errors import NotSupported, SyntaxRefused, TureenError, UnknownSource
from tureen.period import period_of
from tureen.statements import EXECUTED, SELECTS, is_select, keyword, registered_text, split

READING_WORDS = ("SHOW", "LIST", "DESCRIBE", "DESC", "EXPLAIN")
"""First words of statements that give a table and change nothing."""
SHORT_TEXT = 500
"""Characters of a text whose plan is made on the event loop; that of a longer one is in another thread."""
NOTHING_NAMED = "stream, table, view or query"


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is no statement."""


@dataclass(frozen=True, slots=True)
class Command:
    """A statement of the connection itself."""

    sql: str


@dataclass(frozen=True, slots=True)
class Whole:
    """The answer of a query, by its name or handle; first: so many of its rows. period: over that; None: as
    it is now.
    """

    name: str
    schema: str | None
    first: int | None
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A SELECT over the catalogue and over answers. queries: the names of those."""

    sql: str
    tree: exp.Query
    queries: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Once:
    """A SELECT that is asked once. period: over that; None: as it is now."""

    sql: str
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """A statement that is carried out. registers: REGISTER SELECT ..., whose query stays."""

    sql: str
    registers: bool = False

    @property
    def reads(self) -> bool:
        """Whether it gives a table and changes nothing."""
        return keyword(self.sql) in READING_WORDS


@dataclass(frozen=True, slots=True)
class Subscribed:
    """An answer and its changes. snapshot: it begins with the answer. since: it goes on from there."""

    plan: Whole | Once
    snapshot: bool = True
    since: str | None = None


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """How COPY writes lines. null: the text of a NULL."""

    form: Literal["text", "csv", "binary"] = "text"
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"


@dataclass(frozen=True, slots=True)
class Copied:
    """COPY ... TO STDOUT."""

    plan: Whole | Evaluated | Once | Subscribed
    options: CopyOptions


Asked = Whole | Evaluated | Once
Plan = Nothing | Command | Asked | Carried | Subscribed | Copied

_NAME = r'(?:"((?:[^"]|"")+)"|([A-Za-z_][\w$]*))'
_WHOLE = re.compile(
    rf'\s*(?:SELECT\s+\*\s+FROM|TABLE)\s+(?:"?tureen"?\s*\.\s*(?="?public))?(?:"?(public|queries)"?\s*\.\s*)?{_NAME}(?:\s+LIMIT\s+(\d{{1,9}}))?\s*;?\s*',
    re.IGNORECASE,
)


def known_plan_of(sql: str, relations: Relations) -> Plan:
    """The plan of one statement. Raises SyntaxRefused, NotSupported; BrokerUnavailable while what stands is
    not known, where the statement reads or changes any of it.
    """
    if relations.are_told:
        return plan_of(sql, relations)
    try:
        plan = plan_of(sql, relations)
    except TureenError:
        relations.require_told()
        raise
    if not isinstance(plan, Nothing | Command) and not (
        isinstance(plan, Evaluated) and not rewriting.relations_of(plan.tree)
    ):
        relations.require_told()
    return plan


def plan_of(sql: str, relations: Relations) -> Plan:
    """The plan of one statement. Raises SyntaxRefused, NotSupported."""
    whole = _WHOLE.fullmatch(sql)
    if whole is not None:
        found = _whole(whole, relations)
        if found is not None:
            return found
    word = keyword(sql)
    if not word and not is_select(sql):
        if split(sql):
            raise SyntaxRefused("this is no statement", line=1, column=1)
        return Nothing()
    if is_command(sql):
        return Command(sql)
    if word == "COPY":
        return _copied(sql, relations)
    if word == "SUBSCRIBE":
        return subscribed_of(sql, relations)
    if word == "TABLE":
        return asked_of(f"SELECT * FROM {sql.strip()[5:].strip().rstrip(';')}", relations)
    if word == "REGISTER":
        return Carried(registered_text(sql) or "", registers=True)
    if word in SELECTS or word == "VALUES" or is_select(sql):
        return asked_of(sql, relations)
    if word == "INSERT":
        sql = _CAST.sub(lambda found: found[1] or found[2] + " " * (len(found[0]) - len(found[2])), sql)
    if word in EXECUTED:
        return Carried(_without_schema(sql.strip()))
    raise SyntaxRefused(
        f"there is no statement that begins with {word}",
        hint="SELECT, CREATE, DROP, INSERT, SHOW, DESCRIBE, EXPLAIN, ALTER, PAUSE, RESUME, TERMINATE, COPY, "
        "SUBSCRIBE",
        line=1,
        column=1,
    )


_CAST = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|(\$\d+)::[a-z]\w*(?:\s+(?:precision|varying))?(?:\s*\([\d\s,]+\))?"""
    r"""(?:\s+with(?:out)?\s+time\s+zone)?(?:\s+collate\s+"default")?""",
    re.IGNORECASE,
)
"""A parameter and the type that SQLAlchemy casts it to, which INSERT knows by its column."""


def asked_of(sql: str, relations: Relations) -> Asked:
    """The plan of a SELECT. Raises SyntaxRefused, NotSupported."""
    found = period_of(sql)
    if found is None:
        return _now_of(sql, relations)
    sql, asked = found
    plan = _now_of(sql, relations)
    if isinstance(plan, Evaluated) or (isinstance(plan, Whole) and plan.first is not None):
        raise NotSupported(
            "a period is asked of a whole answer, or of a SELECT over streams, tables and views",
            hint="SELECT * FROM query FOR SYSTEM_TIME FROM a TO b",
        )
    return replace(plan, period=Period(asked.from_ms, asked.to_ms))


def _now_of(sql: str, relations: Relations) -> Asked:
    """The plan of a SELECT that names no period. Raises NotSupported."""
    whole = _WHOLE.fullmatch(sql)
    if whole is not None and (found := _whole(whole, relations)) is not None:
        return found
    lock = _LOCK.search(sql)
    if lock is not None:
        raise NotSupported(
            f"{' '.join(lock[1].upper().split())} is not supported: nothing here locks a row",
            hint="leave it out",
            **place_at(sql, lock.start(1)),
        )
    tree = rewriting.select_of(sql)
    if tree is None:
        return Once(_without_schema(sql))
    queries: list[Name] = []
    others = False
    for name in rewriting.relations_of(tree):
        schema, relation = name
        if is_catalogue(name, relations):
            continue
        kept = schema == "queries" or not relations.is_source(relation) or relations.is_materialized(relation)
        if kept and relations.query(relation, schema):
            queries.append(name)
        else:
            _refuse_unknown(name, tree, sql, relations)
            others = True
    if not others:
        return Evaluated(sql, tree, tuple(queries))
    queries = [one for one in queries if one[0] == "queries" or not relations.is_source(one[1])]
    if queries:
        raise NotSupported(
            "a SELECT reads streams, tables and views, or the answers of registered queries, not both",
            hint=f"CREATE VIEW with the text of {queries[0][1]}, and read that",
        )
    return Once(_without_schema(sql))


_LOCK = re.compile(
    r"\s(FOR\s+(?:(?:NO\s+KEY\s+)?UPDATE|(?:KEY\s+)?SHARE))(?:\s+OF\s+[\w.,\s\"]+?)?(?:\s+NOWAIT|\s+SKIP\s+LOCKED)?\s*;?\s*$",
    re.IGNORECASE,
)


def _refuse_unknown(name: Name, tree: exp.Query, sql: str, relations: Relations) -> None:
    """Refuse a name that is nearly the name of a query: who reads streams knows nothing of these."""
    schema, relation = name
    if relations.is_source(relation) or schema not in (None, "public"):
        return
    there = relations.all()
    queries = [one.name for one in there if one.kind == "query"]
    hint = did_you_mean(relation, [one.name for one in there]) or ""
    if hint.startswith("did you mean") and any(shown(one) in hint for one in queries):
        place = rewriting.place_of_table(tree, sql, relation)
        raise UnknownSource(relation, kind=NOTHING_NAMED, hint=hint, **place)


def is_catalogue(name: Name, relations: Relations) -> bool:
    """Whether a relation is one of PostgreSQL's catalogues."""
    schema, relation = name
    if schema is not None:
        return schema in rewriting.CATALOGUES
    return relation.startswith("pg_") and not relations.is_source(relation)


def _whole(found: re.Match[str], relations: Relations) -> Whole | None:
    schema = found[1] and found[1].lower()
    name = found[2].replace('""', '"') if found[2] is not None else found[3]
    folded = name if found[2] is not None else name.lower()
    if schema != "queries" and relations.is_source(folded) and not relations.is_materialized(folded):
        return None
    for one in dict.fromkeys((folded, name)):  # a handle is as it is written
        if relations.query(one, schema) is not None:
            return Whole(one, schema, None if found[4] is None else int(found[4]))
    return None


_SCHEMA = re.compile(
    r"""(?P<schema>(?<![\w."])(?:(?:"tureen"|tureen)\s*\.\s*)?(?:"public"|public)\s*\.\s*(?=["A-Za-z_]))"""
    r"""|'(?:[^']|'')*'|--[^\n\r]*|/\*.*?\*/|"(?:[^"]|"")*\"""",
    re.IGNORECASE | re.DOTALL,
)


def _without_schema(sql: str) -> str:
    """A text without ``public.`` before names, which the language does not have; and without its end. What
    is left stands where it stood.
    """
    text = sql.rstrip().rstrip(";").rstrip()
    if "public" not in text.lower():
        return text
    return _SCHEMA.sub(lambda found: re.sub(r"[^\n]", " ", found[0]) if found["schema"] else found[0], text)


_COPY = re.compile(
    rf"\s*COPY\s+(?:\((?P<select>.+)\)|(?P<name>(?:\"?\w+\"?\s*\.\s*)?{_NAME}))\s+TO\s+STDOUT(?:\s+(?:WITH\s*)?(?P<options>.+?))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(
    r"(?P<key>FORMAT|HEADER|DELIMITER|NULL|CSV|BINARY|TEXT|ENCODING|QUOTE|ESCAPE)\s*(?:AS\s+)?"
    r"(?P<value>'(?:[^']|'')*'|(?!HEADER|DELIMITER|NULL|CSV|FORMAT)\w+)?\s*,?\s*",
    re.IGNORECASE,
)


def _copied(sql: str, relations: Relations) -> Copied:
    found = _COPY.fullmatch(sql)
    if found is None:
        raise NotSupported(
            "this COPY is not understood",
            hint="COPY (SELECT ...) TO STDOUT (FORMAT csv, HEADER); INSERT writes rows, or Kafka's own tools",
        )
    options = _copy_options(found["options"] or "")
    if found["select"]:
        select = _in_place(sql, found)
        if keyword(select) == "SUBSCRIBE":
            return Copied(subscribed_of(select, relations), options)
        return Copied(asked_of(select, relations), options)
    select = f"SELECT * FROM {found['name']}"
    try:
        asked = asked_of(select, relations)
        if isinstance(asked, Once):
            _require_known(select, relations)
    except UnknownSource as refused:
        place = place_at(sql, found.start("name"))
        raise UnknownSource(refused.name, kind=NOTHING_NAMED, hint=refused.hint, **place) from None
    return Copied(asked, options)


def _in_place(sql: str, found: re.Match[str]) -> str:
    """The SELECT of a statement, whose places are those of the whole."""
    return re.sub(r"[^\n]", " ", sql[: found.start("select")]) + found["select"]


_SUBSCRIBE = re.compile(
    rf"\s*SUBSCRIBE\s+(?:TO\s+)?(?:\((?P<select>.+)\)|(?P<name>(?:\"?\w+\"?\s*\.\s*)?{_NAME}))"
    r"(?:\s+WITH\s*\((?P<options>[^()]*)\))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_SUBSCRIBE_OPTION = re.compile(
    r"\s*(?:(?P<snapshot>SNAPSHOT)(?:\s*=?\s*(?P<truth>TRUE|FALSE))?|SINCE\s*=?\s*'(?P<since>[^']*)')\s*(?:,|$)",
    re.IGNORECASE,
)


def subscribed_of(sql: str, relations: Relations) -> Subscribed:
    """The plan of SUBSCRIBE. Raises SyntaxRefused, NotSupported."""
    found = _SUBSCRIBE.fullmatch(sql)
    if found is None:
        raise SyntaxRefused(
            "this SUBSCRIBE is not understood",
            hint="SUBSCRIBE query, SUBSCRIBE (SELECT ...), WITH (snapshot = false), WITH (since = '...')",
            line=1,
            column=1,
        )
    if found["select"]:
        asked = asked_of(_in_place(sql, found), relations)
    else:
        asked = asked_of(f"SELECT * FROM {found['name']}", relations)
        if isinstance(asked, Once):
            _require_known(asked.sql, relations)
    if not isinstance(asked, Evaluated) and asked.period is not None:
        raise NotSupported(
            "changes go on for good; a period ends", hint="leave FOR SYSTEM_TIME out, or SUBSCRIBE"
        )
    if isinstance(asked, Evaluated) or (isinstance(asked, Whole) and asked.first is not None):
        raise NotSupported(
            "changes are those of a whole query, or of a SELECT over streams, tables and views",
            hint="CREATE QUERY with the SELECT that is meant, and SUBSCRIBE to it",
        )
    snapshot, since = _subscribe_options(found["options"] or "")
    return Subscribed(asked, snapshot, since)


def _subscribe_options(text: str) -> tuple[bool, str | None]:
    snapshot, since, at = True, None, 0
    while at < len(text.rstrip()):
        one = _SUBSCRIBE_OPTION.match(text, at)
        if one is None:
            raise NotSupported(f"SUBSCRIBE has no option {text[at:].strip()[:40]}", hint="snapshot, since")
        if one["snapshot"]:
            snapshot = (one["truth"] or "TRUE").upper() == "TRUE"
        else:
            since = one["since"]
        at = one.end()
    return snapshot, since


def _require_known(select: str, relations: Relations) -> None:
    tree = rewriting.select_of(select)
    for _, name in [] if tree is None else rewriting.relations_of(tree):
        if not relations.is_source(name):
            raise UnknownSource(name, hint=did_you_mean(name, [one.name for one in relations.all()]))


def _copy_options(text: str) -> CopyOptions:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    given: dict[str, str] = {}
    at = 0
    while at < len(text):
        one = _OPTION.match(text, at)
        if one is None or one.end() == at:
            raise NotSupported(
                f"COPY has no option {text[at:].strip()[:40]}", hint="FORMAT, HEADER, DELIMITER, NULL"
            )
        key, value = one["key"].lower(), (one["value"] or "").strip("'")
        if key in ("csv", "binary", "text"):
            key, value = "format", key
        if key in ("quote", "escape") or (key == "encoding" and value.upper() not in ("UTF8", "UTF-8")):
            raise NotSupported(f"COPY has no option {key.upper()} here: it is a double quote, and UTF8")
        given[key] = value
        at = one.end()
    form = given.get("format", "text").lower()
    if form not in ("text", "csv", "binary"):
        raise NotSupported(f"COPY has no format {form}", hint="text, csv or binary")
    delimiter = given.get("delimiter", "," if form == "csv" else "\t").replace("\\t", "\t")
    if len(delimiter.encode()) != 1 or delimiter in '\n\r"\\':
        raise NotSupported("the delimiter of COPY is one character of one byte")
    header = given.get("header", "false" if "header" not in given else "true").lower() in (
        "",
        "true",
        "on",
        "1",
    )
    null = given.get("null", "" if form == "csv" else "\\N")
    return CopyOptions(form, "header" in given and header, delimiter, null)  # type: ignore[arg-type]
