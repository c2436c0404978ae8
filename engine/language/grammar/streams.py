"""CREATE and DROP of streams, tables, views and summaries."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import command_nodes, nodes
from engine.language.grammar.constraints import parse_constraint, starts_constraint
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from engine.language.grammar.emit import refuse_changes
from engine.language.grammar.from_topic import parse_from_topic
from engine.language.grammar.options import parse_options
from engine.language.grammar.queries import parse_create_query, parse_drop_query
from engine.language.grammar.scalar import string
from engine.language.grammar.select import parse_query
from engine.language.grammar.sources import parse_names
from engine.language.grammar.subqueries import goes_on_behind_brackets, starts_query
from engine.language.grammar.summaries import parse_create_summary
from engine.language.grammar.typenames import parse_type_name
from engine.language.places import shown
from tureen.errors import NotSupported, SyntaxRefused

_OTHERS = (
    "SOURCE",
    "INDEX",
    "TYPE",
    "FUNCTION",
    "SCHEMA",
    "DATABASE",
)
_KINDS = ("STREAM", "TABLE", "VIEW", "SUMMARY")
_KINDS_TEXT = "STREAM, TABLE, VIEW, SUMMARY or QUERY"
_OF_COLUMNS = {
    "KEY": "write PRIMARY KEY: a table has one row for each key",
    "HEADER": "headers of records are not read; declare members of the JSON object",
    "HEADERS": "headers of records are not read; declare members of the JSON object",
    "METADATA": "only members of the JSON object are columns",
    "COMMENT": "leave it out, or write -- and the comment",
    "AS": "select the expression in a view: CREATE VIEW name AS SELECT ...",
    "UNIQUE": "write CONSTRAINT UNIQUE (column) behind the columns of a stream",
    "REFERENCES": "write CONSTRAINT REFERENCES (column) TO stream (column) behind the columns of a stream",
    **dict.fromkeys(("PRIMARY", "DEFAULT", "CHECK", "GENERATED", "COLLATE"), "leave it out"),
}
"""What may follow a column's type elsewhere -> what to do instead."""
_BEHIND = {
    "TOPIC": "write WITH (topic = 'name')",
    "COMMENT": "leave it out, or write -- and the comment",
    "PARTITIONED": "leave it out: a stream has the partitions of its topic",
    "FORMAT": "leave it out: records are JSON objects",
    "ENVELOPE": "leave it out: a table is the latest record of each key",
    "LIKE": "declare the columns",
    "CONSTRAINT": "write it inside the brackets, behind the columns",
}
"""What may follow the columns elsewhere -> what to do instead."""


def parse_create(cursor: Cursor) -> exp.Expr:
    """CREATE STREAM | TABLE with columns or FROM TOPIC, CREATE [OR REPLACE] VIEW | STREAM name AS query,
    CREATE SUMMARY, CREATE QUERY.
    """
    token = cursor.advance()
    replace = cursor.take_words("OR", "REPLACE")
    _refuse_others(cursor)
    is_materialized = cursor.take_words("MATERIALIZED")
    what = cursor.word
    if what not in (*_KINDS, "QUERY"):
        raise cursor.expected(_KINDS_TEXT, "write CREATE STREAM name (column TYPE, ...)")
    cursor.advance()
    if_not_exists = _existence(cursor, "NOT")
    if what == "QUERY":
        return parse_create_query(cursor, token, replace, if_not_exists)
    name = cursor.name(f"the {what.lower()}'s name")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported(
            f"a {what.lower()}'s name with a dot is not supported", "leave out the part before the dot"
        )
    if what == "SUMMARY":
        if replace:
            raise cursor.text.of_token(token).refuse(
                NotSupported,
                "CREATE OR REPLACE SUMMARY is not supported",
                hint="DROP SUMMARY, then CREATE SUMMARY; ALTER SUMMARY name SET (theta = 0.5) changes theta",
            )
        return parse_create_summary(cursor, token, name, if_not_exists)
    if cursor.word == "AS" or what == "VIEW":
        if replace and is_materialized:
            raise cursor.text.of_token(token).refuse(
                NotSupported,
                "CREATE OR REPLACE MATERIALIZED VIEW is not supported: its query reads it",
                hint="DROP MATERIALIZED VIEW, then CREATE MATERIALIZED VIEW",
            )
        node = _derived(cursor, token, what, name, is_materialized)
        node.set("replace", replace)
        node.set("if_not_exists", if_not_exists)
        return node
    if replace:
        raise cursor.text.of_token(token).refuse(
            NotSupported,
            f"CREATE OR REPLACE of a {what.lower()} with columns is not supported",
            hint=f"DROP {what}, then CREATE {what}",
        )
    if cursor.word == "FROM":
        return parse_from_topic(cursor, token, what, name, if_not_exists)
    return _with_columns(cursor, token, what, name, if_not_exists)


def _refuse_options_before_query(cursor: Cursor, what: str) -> None:
    """Raise for ``WITH (...) AS SELECT``, as in ksqlDB; the next token is WITH."""
    ahead, depth = 1, 0
    while (kind := cursor.peek(ahead).token_type) is not TokenType.BREAK:
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        ahead += 1
        if depth == 0:
            break
    if cursor.word_ahead(ahead) == "AS":
        raise cursor.not_supported(
            f"WITH before AS is not supported: CREATE {what} ... AS has no topic of its own",
            f"leave WITH (...) out: CREATE {what} name AS SELECT ...; EMIT CHANGES INTO name at the end of "
            "a query writes to a topic",
        )


def _refuse_others(cursor: Cursor) -> None:
    """Raise for what CREATE makes elsewhere, with what to write instead."""
    if cursor.word == "MATERIALIZED" and cursor.word_ahead() != "VIEW":
        raise cursor.not_supported(
            f"CREATE MATERIALIZED {cursor.word_ahead()} is not supported".replace("  ", " "),
            "write CREATE MATERIALIZED VIEW name AS SELECT ...",
        )
    if cursor.word in _OTHERS:
        raise cursor.not_supported(
            f"CREATE {cursor.word} is not supported",
            "write CREATE STREAM, CREATE TABLE, CREATE VIEW or CREATE SUMMARY",
        )
    if cursor.word == "SINK":
        raise cursor.not_supported(
            "CREATE SINK is not supported",
            "register SELECT ... EMIT CHANGES INTO name, which writes to a topic",
        )
    if cursor.word in ("TEMPORARY", "TEMP", "EXTERNAL", "RECURSIVE"):
        raise cursor.not_supported(f"CREATE {cursor.word} is not supported", f"leave {cursor.word} out")
    if cursor.word == "CONTINUOUS":
        raise cursor.not_supported(
            "CREATE CONTINUOUS is not supported: each query is continuous",
            "write CREATE QUERY name AS SELECT ...",
        )


def _derived(
    cursor: Cursor, token: Token, what: str, name: exp.Identifier, is_materialized: bool
) -> nodes.CreateDerivedNode:
    """``(names) AS query``, perhaps in brackets; a materialized view may have EMIT CHANGES, which is its
    query's.
    """
    names = parse_names(cursor)
    cursor.expect_word("AS", f"write CREATE {what} name AS SELECT ...")
    brackets = not goes_on_behind_brackets(cursor) and cursor.take(TokenType.L_PAREN)
    begin = cursor.token.start
    if not starts_query(cursor):
        raise cursor.expected("SELECT", f"write CREATE {what} name AS SELECT ...")
    query = parse_query(cursor)
    end = cursor.end
    emit = query.args.get("emit") if is_materialized else None
    if emit is not None:
        query.set("emit", None)
        end = emit.meta["start"]
    refuse_changes(
        cursor,
        query,
        f"the definition of a {what.lower()}",
        "leave {} out here, and write it in a query that selects from " + shown(name.name),
        is_stream=True,
    )
    emitted = None if emit is None else cursor.text.sql[end : cursor.end]
    if brackets:
        cursor.expect(TokenType.R_PAREN, ")")
    if cursor.word == "WITH":
        raise cursor.not_supported(f"WITH after CREATE {what} ... AS is not supported", "leave it out")
    node = nodes.CreateDerivedNode(this=name, what=what, query=query, names=names, begin=begin, end=end)
    node.set("materialized", (emitted or "") if is_materialized else None)
    return cursor.node(node, token, query)


def _with_columns(
    cursor: Cursor, token: Token, what: str, name: exp.Identifier, if_not_exists: bool
) -> nodes.CreateStreamNode:
    """``(columns and constraints) [WITH (options)] [RETAIN duration] [[NON] RETROACTIVE]``."""
    key = "" if what == "STREAM" else ", PRIMARY KEY (column)"
    if cursor.word == "WITH":
        _refuse_options_before_query(cursor, what)
        raise cursor.refuse(
            SyntaxRefused,
            "the columns are missing",
            hint=f"write CREATE {what} name (column TYPE, ...{key}) WITH (...), or CREATE {what} name FROM "
            "TOPIC 'topic', which infers them from the topic's records",
        )
    cursor.expect(TokenType.L_PAREN, "( and the columns", f"write CREATE {what} name (column TYPE, ...{key})")
    columns: list[nodes.ColumnDeclaration] = []
    keys: list[exp.Identifier] | None = None
    constraints: list[nodes.ConstraintNode] = []
    while True:
        if cursor.word == "WATERMARK" and cursor.word_ahead() == "FOR":
            raise cursor.not_supported(
                "WATERMARK FOR is not supported",
                "name the column after the brackets: WITH (timestamp = 'ts', lateness = '5 seconds')",
            )
        if columns and cursor.at(TokenType.R_PAREN):
            raise cursor.expected("a column's name", "a comma before ) is one too many")
        if _starts_key(cursor):
            keys = _key(cursor, what, again=keys is not None)
        elif starts_constraint(cursor):
            if len(constraints) >= cursor.limits.constraints_max:
                raise cursor.place.exceeded("constraints_max", cursor.limits.constraints_max)
            constraints.append(parse_constraint(cursor, what))
        elif len(columns) >= cursor.limits.columns_max:
            raise cursor.place.exceeded("columns_max", cursor.limits.columns_max)
        else:
            columns.append(_column(cursor, what))
        if not cursor.take(TokenType.COMMA):
            break
    cursor.expect(TokenType.R_PAREN, ") or a comma")
    options: list[nodes.OptionSetting] = []
    retain = retroactive = None
    while True:
        if cursor.word == "WITH" and not options:
            options = parse_options(cursor, "topic = 'name', timestamp = 'column'")
        elif cursor.word == "RETAIN" and retain is None:
            cursor.advance()
            retain = parse_duration(cursor)
        elif retroactive is None and _starts_retroactive(cursor):
            retroactive = _retroactive(cursor, what)
        else:
            break
    if cursor.word in _BEHIND:
        raise cursor.not_supported(f"{cursor.word} after the columns is not supported", _BEHIND[cursor.word])
    node = nodes.CreateStreamNode(
        this=name, what=what, columns=columns, key=keys, constraints=constraints, options=options,
        retain=retain, retroactive=retroactive, if_not_exists=if_not_exists,
    )  # fmt: skip
    return cursor.node(node, token)


def _starts_key(cursor: Cursor) -> bool:
    return cursor.word in ("PRIMARY", "FOREIGN") and cursor.word_ahead() == "KEY"


def _key(cursor: Cursor, what: str, *, again: bool) -> list[exp.Identifier]:
    """``PRIMARY KEY (column, ...)``."""
    if cursor.word == "FOREIGN":
        raise cursor.not_supported("FOREIGN KEY is not supported", "leave it out")
    if what == "STREAM":
        raise cursor.not_supported(
            "a stream has no primary key: it only grows",
            "write KEY behind the columns that are read from the record's key, or CREATE TABLE",
        )
    if again:
        raise cursor.refuse(SyntaxRefused, "the key is given twice", hint="leave one of them out")
    cursor.advance()
    cursor.advance()
    hint = "write PRIMARY KEY (column, ...)"
    cursor.expect(TokenType.L_PAREN, "( and the columns of the key", hint)
    names = cursor.listed(lambda: cursor.name("a column of the key"))
    cursor.expect(TokenType.R_PAREN, ") or a comma", hint)
    return names


def _starts_retroactive(cursor: Cursor) -> bool:
    return cursor.word == "RETROACTIVE" or (cursor.word == "NON" and cursor.word_ahead() == "RETROACTIVE")


def _retroactive(cursor: Cursor, what: str) -> nodes.Retroactive:
    token = cursor.token
    if what == "STREAM":
        raise cursor.not_supported(
            f"{cursor.word} is for tables only", "leave it out, or write CREATE TABLE with a PRIMARY KEY"
        )
    non = cursor.take_words("NON")
    cursor.advance()
    return cursor.node(nodes.Retroactive(this=not non), token)


def parse_drop(cursor: Cursor) -> nodes.DropNode | command_nodes.ControlNode:
    """DROP STREAM | TABLE | VIEW | SUMMARY [IF EXISTS] name [CASCADE | RESTRICT], DROP QUERY [IF EXISTS]
    name.
    """
    token = cursor.advance()
    is_materialized = cursor.word_ahead() == "VIEW" and cursor.take_words("MATERIALIZED")
    if cursor.word in (*_OTHERS, "MATERIALIZED"):
        raise cursor.not_supported(
            f"DROP {cursor.word} is not supported", "write DROP STREAM, TABLE, VIEW, SUMMARY or QUERY"
        )
    what = cursor.word
    if what not in (*_KINDS, "QUERY"):
        raise cursor.expected(_KINDS_TEXT, "write DROP STREAM name")
    cursor.advance()
    if_exists = _existence(cursor, None)
    if what == "QUERY":
        return parse_drop_query(cursor, token, if_exists)
    name = cursor.name(f"the {what.lower()}'s name")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported(
            f"a {what.lower()}'s name with a dot is not supported", "leave out the part before the dot"
        )
    cascade = cursor.word == "CASCADE"
    if cascade and what == "SUMMARY":
        raise cursor.not_supported(
            "DROP SUMMARY ... CASCADE is not supported", "end the queries that use it, then drop it"
        )
    if cascade or cursor.word == "RESTRICT":
        cursor.advance()
    if cursor.word == "DELETE" or cursor.at(TokenType.COMMA):
        what_else = "DELETE TOPIC" if cursor.word == "DELETE" else "DROP of several names"
        hint = "leave it out; topics are deleted in Kafka" if cursor.word else "drop them one by one"
        raise cursor.not_supported(f"{what_else} is not supported", hint)
    node = nodes.DropNode(
        this=name, what=what, if_exists=if_exists, cascade=cascade, materialized=is_materialized
    )
    return cursor.node(node, token)


def _existence(cursor: Cursor, negation: str | None) -> bool:
    if cursor.word != "IF":
        return False
    words = ("IF", "NOT", "EXISTS") if negation else ("IF", "EXISTS")
    if cursor.take_words(*words):
        return True
    if cursor.word_ahead() in ("NOT", "EXISTS", "EXIST"):
        while cursor.word in words:
            cursor.advance()
        raise cursor.expected("EXISTS", f"write {' '.join(words)}")
    return False


def _column(cursor: Cursor, what: str) -> nodes.ColumnDeclaration:
    token = cursor.token
    name = cursor.name("a column's name")
    if cursor.word == "AS":
        raise cursor.not_supported("computed columns are not supported", _OF_COLUMNS["AS"])
    kind = parse_type_name(cursor)
    not_null = key = False
    path: exp.Expr | None = None
    while True:
        if cursor.take_words("NOT", "NULL"):
            not_null = True
        elif path is None and cursor.take_words("PATH"):
            if not cursor.at(TokenType.STRING):
                raise cursor.refuse(
                    SyntaxRefused,
                    "a path stands in single quotes",
                    hint="write name STRING PATH '$.member.inner'",
                )
            path = string(cursor)
        elif cursor.take_words(*(("PRIMARY", "KEY") if what == "TABLE" else ("KEY",))):
            key = True
        elif not_null or not cursor.take_words("NULL"):
            break
    if what == "STREAM" and cursor.word == "PRIMARY":
        raise cursor.not_supported(
            "a stream has no primary key: it only grows",
            "write KEY for a column that is read from the record's key, or CREATE TABLE",
        )
    if cursor.word in _OF_COLUMNS:
        raise cursor.not_supported(f"{cursor.word} on a column is not supported", _OF_COLUMNS[cursor.word])
    return cursor.node(
        nodes.ColumnDeclaration(this=name, kind=kind, not_null=not_null, key=key, path=path), token
    )
