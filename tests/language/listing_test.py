"""The listing of the language is complete: what the binder and the grammar know is in it, explained."""

from __future__ import annotations

import re

from engine.language.aggregates import AGGREGATE_ALIASES, AGGREGATES
from engine.language.bind.typenames import TYPE_NAMES
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.functions import FUNCTIONS as SCALAR
from engine.language.grammar.statement import STATEMENT_WORDS
from engine.language.grammar.table_functions import USAGE
from engine.language.listing import STATEMENTS, language
from engine.language.statements import parse
from engine.language.user_functions import user_function
from engine.model.limits import Limits
from tests.language.fixtures import stream_of
from tests.language.reference_page import EXAMPLES, STREAMS, SUMMARIES

LISTED = language(BUILT_IN)
FUNCTIONS = {name for one in LISTED["functions"] for name in (one["name"], *one["aliases"])}
OPERATORS = {one.name for one in SCALAR.values() if one.is_operator}
TYPES = {name for one in LISTED["types"] for name in (one["name"], *one["aliases"])}


def test_every_function_is_listed_with_its_signature_and_what_it_gives() -> None:
    known = {*BUILT_IN.names, *AGGREGATES, *AGGREGATE_ALIASES, *USAGE} - OPERATORS
    assert known <= FUNCTIONS
    assert all(
        one["about"] and one["signature"].upper().startswith(one["name"]) for one in LISTED["functions"]
    )


def test_a_function_of_the_users_is_listed_with_its_types() -> None:
    own = user_function("near", ["DOUBLE", "STRING"], "BOOLEAN", lambda a, b: True, deterministic=True)
    (found,) = (one for one in language(FunctionCatalogue([own]))["functions"] if one["kind"] == "user")
    assert (found["name"], found["signature"]) == ("NEAR", "NEAR(DOUBLE, STRING)")
    assert found["about"] == "gives BOOLEAN; a function of this broker's own, deterministic"


def test_every_type_and_every_statement_is_listed() -> None:
    assert set(TYPE_NAMES) <= TYPES
    assert {words.split()[0] for words, _, _ in STATEMENTS} >= STATEMENT_WORDS - {
        "WITH", "ISTREAM", "DSTREAM", "RSTREAM", "LIST", "DESC",
    }  # fmt: skip


def test_words_of_the_reference_are_keywords_functions_or_types() -> None:
    """It writes these in capitals, and names in small letters."""
    known = {*LISTED["keywords"], *LISTED["units"], *FUNCTIONS, *TYPES}
    for sql in EXAMPLES:
        plain = re.sub(r"'[^']*'|\"[^\"]*\"|--[^\n]*", "", sql)
        for word in re.findall(r"\b[A-Z][A-Z_]+\b", plain):
            assert word in known or word.removesuffix("S") in known, (word, sql)


TABLE = "CREATE TABLE fresh (k STRING PRIMARY KEY, v STRING) WITH ({more}{option})"
AVRO = """format = 'avro', schema = '"int"', """
FORMS = {
    "format = 'raw'": ("CREATE STREAM fresh (value BYTES) WITH ({more}{option})", ""),
    "format = 'debezium'": (TABLE, ""),
    "changelog = false": (TABLE, "format = 'debezium', "),
    "changelog = true": ("CREATE STREAM fresh (v STRING) WITH ({more}{option})", "format = 'debezium', "),
    "key_format": (TABLE, ""),
    "delimiter": ("", "format = 'csv', "),
    "schema": ("", "format = 'avro', "),
    "framed": ("", AVRO),
    "message": ("", "format = 'protobuf', schema = 'package shop; message Order {}', "),
    "timestamp": ("", ""),
}
"""Options, or some with a value, that need other ones beside them or another statement: that, and those."""


def test_an_example_of_each_option_is_served() -> None:
    stream = {**stream_of("ts TIMESTAMP NOT NULL, column TIMESTAMP", "timestamp = 'ts'"), **STREAMS}
    forms = {
        "stream": 'CREATE STREAM fresh ("column" TIMESTAMP NOT NULL) WITH ({more}{option})',
        "emit": "SELECT ts FROM t EMIT CHANGES INTO x WITH ({option})",
        "summary": "CREATE SUMMARY x ON flights (delay) WITH GRANULARITY 10 SECONDS AND COLLAPSE (2, 2)"
        " SETTINGS ({option})",
        "query": "SELECT ts FROM t WITH ({option})",
    }
    for one in LISTED["options"]:
        assert one["about"]
        for value in [one["example"], *(f"'{choice}'" for choice in one["choices"])]:
            option = f"{one['name']} = {value}"
            form, more = "", "timestamp = 'column', "
            if one["place"] == "stream":
                plain = option.replace("'true'", "true").replace("'false'", "false")
                form, more = FORMS.get(plain) or FORMS.get(one["name"]) or (form, more)
            sql = (form or forms[one["place"]]).format(option=option, more=more)
            parse(sql, stream, Limits(), summaries=SUMMARIES)


def test_each_window_in_brackets_is_served() -> None:
    for one in LISTED["windows"]:
        form = one["form"].replace("key", "dest")
        parse(f"SELECT dest FROM flights {form}", STREAMS, Limits())
