"""Data and helpers that ``shedding_test.py`` shares with other tests."""

from __future__ import annotations

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.step import CreateSource
from tests.differential.agreement import EngineSubject

SQL = "CREATE STREAM s (v BIGINT, at TIMESTAMP) WITH (timestamp = 'at')"


def subject_of() -> EngineSubject:
    subject = EngineSubject()
    statement = parse(SQL, {}, Limits())
    assert isinstance(statement, CreateStream)
    subject.apply(subject.next_step(0, CreateSource(statement.stream, SQL)))
    return subject
