"""One thing that an edit will do, and the change that it follows from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.model.approximation import NOT_KNOWN, Expected
from engine.model.attributes import AttributeValue


@dataclass(frozen=True, slots=True)
class Consequence:
    """code: for programs. text: for people, a sentence. nbytes: of memory, as estimated, below 0 where some
    is freed; None: it is no matter of memory, or nothing tells. expected: of an answer that becomes
    approximate.
    """

    code: str
    text: str
    nbytes: int | None = None
    expected: Expected = NOT_KNOWN

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        told: dict[str, Any] = {"code": self.code, "text": self.text}
        if self.nbytes is not None:
            told["bytes"] = self.nbytes
        if expected := self.expected.as_dict():
            told["expected"] = expected
        return told


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one attribute. module: the first part of the entity's name on its shard, such as
    ``query-stem``, or ``query`` where the attribute is a query's. facts: the attributes of the entity as they
    stand. nbytes, expected: as of :class:`Consequence`, where they were worked out.
    """

    module: str
    name: str
    before: AttributeValue
    after: AttributeValue
    facts: Mapping[str, AttributeValue] = field(default_factory=dict)
    nbytes: int | None = None
    expected: Expected = NOT_KNOWN


STAY = Consequence("answers_stay", "No answer changes.")


def together(found: Mapping[str, tuple[Consequence, ...]]) -> list[dict[str, Any]]:
    """Merge the consequences of edits of several attributes, each once. What says that answers stay goes
    where another says that they do not; bytes are summed.
    """
    every = [one for each in found.values() for one in each]
    codes = {one.code for one in every}
    if len(found) > 1 and codes != {"nothing_changes"}:
        every = [one for one in every if one.code != "nothing_changes"]
    if codes & OF_ANSWERS:
        every = [one for one in every if one.code != STAY.code]
    return [one.as_dict() for one in dict.fromkeys(every)]


OF_ANSWERS = frozenset(
    {
        "answer_ends",
        "answer_returns",
        "answers_approximate",
        "answers_may_be_approximate",
        "answers_exact",
        "answers_change",
    }
)
"""Codes of consequences by which answers do not stay as they are."""
