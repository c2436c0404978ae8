"""Views, derived streams and derived tables in the store and the journal, those of earlier versions too."""

from __future__ import annotations

import orjson
import pytest

from engine.model.source import Derived, SourceName
from engine.model.step import CreateDerived, Position, Step, StepResult
from storage.frames import wrap
from storage.state_codec import DERIVED_VERSION, decode_derived, encode_derived
from topics.journal import VERSION, decode_step, encode_step

NAME = SourceName("x")
KINDS = {
    "view": Derived(NAME, "SELECT 1"),
    "stream": Derived(NAME, "SELECT 1", True),
    "table": Derived(NAME, "SELECT 1", False, True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_comes_back_as_it_was(kind: str) -> None:
    derived = KINDS[kind]
    assert derived.kind == kind
    assert decode_derived(encode_derived(derived), "x") == derived
    step = Step(Position(1, 2), 3, CreateDerived(derived))
    _, value = encode_step(step, StepResult(Position(1, 2)))
    assert decode_step(value).body == CreateDerived(derived)
    assert orjson.loads(value)["v"] == VERSION


@pytest.mark.parametrize("is_stream", [False, True])
def test_what_earlier_versions_wrote_is_read(is_stream: bool) -> None:
    facts = {"name": "x", "sql": "SELECT 1", "is_stream": is_stream}
    written = wrap(DERIVED_VERSION, orjson.dumps(facts))
    assert decode_derived(written, "x") == Derived(NAME, "SELECT 1", is_stream)
    assert encode_derived(Derived(NAME, "SELECT 1", is_stream)) == written
