"""What the newest records of a topic have of the columns that a stream declares."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.model.paths import parse_path
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, JSON, STRING
from topics.sampling import sample


class Message:
    """A record as a consumer gives it."""

    def __init__(self, offset: int, value: Any) -> None:
        self._offset = offset
        self._value = json.dumps(value).encode()

    def value(self) -> bytes:
        return self._value

    def key(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_700_000_000_000


def at(name: str, path: str) -> Field:
    return Field(name, STRING, path=parse_path(path))


def found(fields: list[Field], *records: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that no record has, and the members that are no column."""
    stream = Stream(SourceName("s"), Schema((Field("id", BIGINT), *fields)), "s")
    told = sample(stream, [Message(place, record) for place, record in enumerate(records)])
    assert told.unreadable == 0
    return told.columns_without_member, told.members_without_column


RECORD = {"id": 1, "actor": {"id": "x", "first name": None}, "tags": ["a"], "more": 2}


@pytest.mark.parametrize("path", ["$.actor.id", '$.actor."first name"', "$.tags[0]"])
def test_a_column_whose_path_leads_somewhere_is_there(path: str) -> None:
    missing, others = found([at("actor_id", path)], {"id": 2}, RECORD)
    assert missing == ()
    assert "more" in others


@pytest.mark.parametrize("path", ["$.actor.nosuch", "$.tags[1]", "$.id.x", "$.Actor.id", "$.actor_id"])
def test_a_column_whose_path_leads_nowhere_is_missing(path: str) -> None:
    assert found([at("actor_id", path)], {"id": 2}, RECORD)[0] == ("actor_id",)


def test_the_whole_record_is_there() -> None:
    assert found([Field("whole", JSON, path=())], RECORD)[0] == ()


def test_members_that_a_path_goes_through_are_no_others() -> None:
    fields = [at("actor_id", "$.actor.id"), Field("gone", STRING), at("tag", "$.tags[4]")]
    assert found(fields, RECORD) == (("gone", "tag"), ("more",))
