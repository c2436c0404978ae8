"""Which of a text's literals its meaning depends on, and how: the record that a template is made of.

While a text is bound, each literal that the grammar reads as a scalar stands in the tree as a :class:`Traced`
one. It is a literal like any other; what is done with it is noted:

* it is converted (:meth:`Literal.through`): another traced literal, which can be computed again for another
  value, and must then have the same type;
* it is compared with another literal (an operand that stands twice, a choice of IN): the outcome is noted;
* its value is looked at: whatever was decided by it holds for this very value alone, so it is *pinned*.

So the meaning of the text is known for all literals that give the same outcomes, whatever code bound it. Code
need not know of tracing: what it does not do by ``through`` pins, which costs sharing, never correctness.
Literals that the grammar read as something else (rows of a window, a pattern) never become traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from engine.model.expressions import Literal, Value
from engine.model.types import BIGINT, INTEGER, Type

Convert = Callable[..., Literal]


@dataclass(frozen=True, slots=True)
class Conversion:
    """``values[result]`` is ``convert(values[origin], *facts)``, which has this type."""

    origin: int
    convert: Convert
    facts: tuple[Any, ...]
    type: Type


def negated(literal: Literal) -> Literal:
    """A number with a minus sign before it, as the text of both would be read."""
    value = literal.value
    assert isinstance(value, int | float | Decimal)
    if isinstance(value, int):
        return Literal(-value, INTEGER if value <= 2**31 else BIGINT)
    return Literal(-value, literal.type)


class Trace:
    """What was noted.

    places: offset in the text -> number of the literal that begins there; numbers go on with conversions.
    literals: without their signs. read: those that the grammar read as scalars. pinned: those whose value
    was looked at. alike, differ, differ_from: outcomes of comparisons. hashed: those that were looked up
    in a set or dictionary: against a literal that is not traced, there may have been no comparison.
    """

    def __init__(self, places: dict[int, int], literals: Sequence[Literal]) -> None:
        self._places = places
        self._literals = literals
        self._roots: list[int] = list(range(len(literals)))
        self._open = True
        self.conversions: list[Conversion] = []
        self.read: set[int] = set()
        self.pinned: set[int] = set()
        self.differ: set[tuple[int, int]] = set()
        self.alike: set[tuple[int, int]] = set()
        self.differ_from: set[tuple[int, Literal]] = set()
        self.hashed: dict[int, Literal] = {}

    def literal(self, offset: int, literal: Literal, negative: bool) -> Literal:
        """A literal of the text, at its token; the literal itself where it is none of the places."""
        number = self._places.get(offset)
        if number is None or not self._open:
            return literal
        traced: Literal = Traced(self, number, self._literals[number])
        if negative:
            traced = traced.through(negated)
        assert traced.type == literal.type
        self.read.add(number)
        return traced

    def convert(self, origin: Traced, convert: Convert, facts: tuple[Any, ...]) -> Literal:
        """Note a conversion. Raises what it raises."""
        result = convert(origin.raw, *facts)
        if not self._open:
            return result
        for fact in facts:
            if isinstance(fact, Traced):
                self.pin(fact.number)
        self.conversions.append(Conversion(origin.number, convert, facts, result.type))
        self._roots.append(self._roots[origin.number])
        if result.value is None:
            self.pin(origin.number)
            return result
        return Traced(self, len(self._roots) - 1, result)

    def pin(self, number: int) -> None:
        """The meaning holds for this value alone."""
        if self._open:
            self.pinned.add(self._roots[number])

    def compare(self, left: Traced, right: Literal, outcome: bool) -> None:
        """Note that two literals of one type were found equal, or not."""
        if not self._open:
            return
        if isinstance(right, Traced):
            if left.number != right.number:
                pair = (min(left.number, right.number), max(left.number, right.number))
                (self.alike if outcome else self.differ).add(pair)
        elif outcome:
            self.pin(left.number)
        else:
            self.differ_from.add((left.number, right))

    def look_up(self, traced: Traced) -> None:
        """Note that a literal's hash was asked for."""
        if self._open:
            self.hashed[traced.number] = traced.raw

    def close(self) -> None:
        """The text is bound; what happens to its tree from now on is no part of its meaning."""
        self._open = False


class Traced(Literal):
    """A literal of a text that is being traced; see the module. ``raw``: the literal itself."""

    __slots__ = ("_trace", "number", "raw")

    def __init__(self, trace: Trace, number: int, raw: Literal) -> None:
        object.__setattr__(self, "_trace", trace)
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "raw", raw)
        object.__setattr__(self, "type", raw.type)

    raw: Literal
    number: int
    _trace: Trace

    @property
    def value(self) -> Value:
        self._trace.pin(self.number)
        return self.raw.value

    @property
    def is_null(self) -> bool:
        return False

    def through(self, convert: Convert, *facts: Any) -> Literal:
        return self._trace.convert(self, convert, facts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        if self.type != other.type:
            return False
        outcome = self.raw == (other.raw if isinstance(other, Traced) else other)
        self._trace.compare(self, other, outcome)
        return outcome

    def __hash__(self) -> int:
        # One hash for all values of a type, so that equality is asked for and its outcome noted.
        self._trace.look_up(self)
        return hash(self.type)

    def __repr__(self) -> str:
        self._trace.pin(self.number)
        return repr(self.raw)
