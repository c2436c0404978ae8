"""Templates: texts that differ in constants alone are parsed and bound once.

    text  ->  cut into shape and literals  ->  template of that shape  ->  bound query

The shape of a text (:mod:`engine.language.cutting`) is everything but its literals, which a template takes
in. A template is made from a text that was bound while noting what became of its literals
(:mod:`engine.language.tracing`): how each was converted, which were compared, whose values were looked at.
Its query for other literals is built only where all those outcomes are the same, and is then the very query
that parsing and binding give. Literals that were looked at, or that the grammar read as something else (rows
and durations of a window, LIMIT, patterns), must be written the same: templates are found by shape and those.
Whatever a template does not serve, refusals above all, goes the whole way, so errors keep their places.

Before a template serves, it is tried: for a text of the same shape with every other literal changed it
must give the query that the whole way gives. So nothing that reads a literal behind the record's back can go
unnoticed.

Valid for one catalogue. Bounded: the least recently used go. A shape is compiled when it is seen the second
time. Cost of a text by template: some 15 us for a handful of literals, and twice that for its tree, which is
built when somebody asks for it; the whole way is 0.5 ms. Not thread-safe; the queries and templates that it
gives out are.

Most queries are conjunctions of comparisons of columns with constants, over one source. Their template says
so (:mod:`engine.language.selection`): whoever keeps many of them needs the constants alone, and no tree.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from engine.language.bind.environment import NO_SUMMARIES, Summaries
from engine.language.cutting import Cut, Shape, cut, is_sure
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.preference import Preference
from engine.language.query import Query, Statement
from engine.language.selection import Selection, comparisons_of
from engine.language.statements import parse
from engine.language.tracing import Conversion, Trace, Traced
from engine.model.expressions import Literal
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.summary import SummaryName
from engine.model.tolerance import Tolerance
from engine.model.types import STRING, Type
from tureen.errors import TureenError

TEMPLATES_MAX = 2_048
TEXTS_MAX = 1_024
"""Texts that no template served, whose statements are kept for those who say the very same."""
VARIANTS_MAX = 8
"""Templates of one shape and the same fixed literals; they differ in outcomes of comparisons."""
MISSES_MAX = 64
"""A shape that was compiled so often, and served less often than that, is not compiled any more."""
CONDITIONS_MAX = 1_000
"""A template may ask of so many pairs of literals that they differ."""
INSTANCES_MAX = 2_048
"""Queries of standing texts that are kept for the next time they are asked for."""

Build = Callable[[Sequence[Literal], str], Any]
Key = TypeVar("Key", bound=Hashable)
Held = TypeVar("Held")


class OfTemplate(Protocol):
    """What a template was found for."""

    @property
    def query(self) -> Query:
        """The tree of its text. O(its size) where nobody asked for it lately."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundTemplate(ABC):
    """What a standing text means, without holding the tree: :meth:`query` makes it, or finds it, on demand.

    sources, uses, summaries, emits, tolerance, weight, has_down_to, preference: of each of its queries.
    """

    sources: tuple[SourceName, ...]
    uses: tuple[str, ...]
    summaries: tuple[SummaryName, ...]
    emits: bool
    tolerance: Tolerance
    weight: float | None
    has_down_to: bool
    preference: Preference | None

    @abstractmethod
    def query(self, text: str) -> Query:
        """text: one that it was found for."""

    def like(self, one: OfTemplate) -> Query:
        """A query like that of a text it was found for, in everything but constants; where one is known, no
        tree is built.
        """
        return one.query


def _facts_of(query: Query) -> dict[str, Any]:
    """The fields of a BoundTemplate."""
    names = ("sources", "uses", "summaries", "tolerance", "weight", "has_down_to", "preference")
    return {name: getattr(query, name) for name in names} | {"emits": query.emit is not None}


@dataclass(frozen=True, slots=True)
class FixedQuery(BoundTemplate):
    """The meaning of one text, as its query."""

    bound: Query

    @classmethod
    def of(cls, query: Query) -> FixedQuery:
        """The meaning of the text that was bound to this."""
        return cls(**_facts_of(query), bound=query)

    def query(self, text: str) -> Query:
        return self.bound


@dataclass(frozen=True, slots=True, eq=False)
class Template(BoundTemplate):
    """The meaning of every text of one shape whose literals fulfil the conditions; immutable.

    selection: what its queries are, where they are of that form and do not emit. alike, differ: literals (by
    number, conversions included) that must be equal, or all different. differ_from: literals that must not be
    these constants.
    """

    selection: Selection | None
    conversions: tuple[Conversion, ...]
    alike: tuple[tuple[int, int], ...]
    differ: tuple[tuple[int, ...], ...]
    differ_from: tuple[tuple[int, Literal], ...]
    build: Build

    def query(self, text: str) -> Query:
        return _instance(self, text)

    def like(self, one: OfTemplate) -> Query:
        return one.query if self.selection is None else self.selection.like

    def instance(self, found: Cut) -> Query | None:
        """The query of a text of this shape, None where a condition fails. O(tree)."""
        values = self.values(found)
        return None if values is None else self.built(values, found.sql)

    def built(self, values: Sequence[Literal], text: str) -> Query:
        """The query of a text, from what :meth:`values` gave for it. O(tree)."""
        query: Query = self.build(values, text)
        return query

    def values(self, found: Cut) -> Sequence[Literal] | None:
        """The literals of a text of this shape and their conversions, None where a condition fails.
        O(literals).
        """
        values = found.literals
        if self.conversions:
            values = values.copy()
            for step in self.conversions:
                try:
                    value = step.convert(values[step.origin], *step.facts)
                except TureenError:
                    return None
                if value.type != step.type:
                    return None
                values.append(value)
        for group in self.differ:
            if len({values[number].value for number in group}) < len(group):
                return None
        for one, other in self.alike:
            if values[one].value != values[other].value:
                return None
        for number, constant in self.differ_from:
            if values[number] == constant:
                return None
        return values


@lru_cache(maxsize=INSTANCES_MAX)
def _instance(template: Template, text: str) -> Query:
    found = cut(text)
    query = None if found is None else template.instance(found)
    assert query is not None
    return query


class Read:
    """A text that was bound. Immutable but for its tree, which is built when it is first asked for.

    text: as it was bound. template: what to keep of a query; None of another statement. values: of a text by
    template, what it is built from.
    """

    __slots__ = ("_statement", "template", "text", "values")

    def __init__(
        self,
        text: str,
        template: BoundTemplate | None,
        statement: Statement | None,
        values: Sequence[Literal] | None = None,
    ) -> None:
        """statement: None where ``template`` is a template, and ``values`` are given."""
        self.text = text
        self.template = template
        self.values = values
        self._statement = statement

    @classmethod
    def of(cls, query: Query) -> Read:
        """A query whose tree is there."""
        return cls(query.sql, FixedQuery.of(query), query)

    @property
    def statement(self) -> Statement:
        """The tree. O(1) but for the first time, O(tree)."""
        if self._statement is None:
            assert isinstance(self.template, Template)
            assert self.values is not None
            self._statement = self.template.built(self.values, self.text)
        return self._statement

    @property
    def query(self) -> Query:
        """The tree of a query."""
        statement = self.statement
        assert isinstance(statement, Query)
        return statement


@dataclass(slots=True)
class _Known:
    """A shape. fixed: its literals that templates are found by; None before the first is made."""

    fixed: tuple[int, ...] | None = None
    compiled: int = 0
    served: int = 0


class Templates:
    """Statements of texts, against one catalogue."""

    def __init__(
        self,
        catalogue: Mapping[str, Any],
        limits: Limits,
        functions: FunctionCatalogue = BUILT_IN,
        summaries: Summaries = NO_SUMMARIES,
    ) -> None:
        self.catalogue = catalogue
        self.summaries = summaries
        self._limits = limits
        self._functions = functions
        self._texts: OrderedDict[str, Read] = OrderedDict()
        self._shapes: OrderedDict[Shape, _Known] = OrderedDict()
        self._templates: OrderedDict[tuple[Shape, tuple[str, ...]], list[Template]] = OrderedDict()

    def statement(self, text: str) -> Statement:
        """What :func:`engine.language.statements.parse` gives. Raises what it raises."""
        return self.read(text).statement

    def read(self, text: str) -> Read:
        """What a text means; no tree is built where a template serves. Raises as :meth:`statement`."""
        same = self._texts.get(text)
        if same is not None:
            self._texts.move_to_end(text)
            return same
        found = cut(text) if self._is_writable(text) else None
        if found is None:
            return self._whole(text)
        known = self._shapes.get(found.shape)
        if known is None:
            if is_sure(found):
                _keep(self._shapes, found.shape, _Known())
            return self._whole(text)
        self._shapes.move_to_end(found.shape)
        if known.fixed is not None:
            key = (found.shape, tuple([found.texts[number] for number in known.fixed]))
            variants = self._templates.get(key)
            if variants is None:
                _keep(self._templates, key, [])
                return self._whole(text)
            self._templates.move_to_end(key)
            for template in variants:
                values = template.values(found)
                if values is not None:
                    known.served += 1
                    return Read(text, template, None, values)
            if len(variants) >= VARIANTS_MAX:
                return self._whole(text)
        if known.compiled > MISSES_MAX + known.served:
            return self._whole(text)
        return self._compiled(found, known)

    def _is_writable(self, text: str) -> bool:
        """Whether the size and the characters of a text are surely served; the whole way says why not."""
        return (text.isascii() and len(text) <= self._limits.sql_bytes_max) or _fits(text, self._limits)

    def _whole(self, text: str) -> Read:
        statement = self._parsed(text)
        read = Read(text, FixedQuery.of(statement) if isinstance(statement, Query) else None, statement)
        _keep(self._texts, text, read, TEXTS_MAX)
        return read

    def _parsed(self, text: str, trace: Trace | None = None) -> Statement:
        """The whole way. Raises what :func:`engine.language.statements.parse` raises."""
        return parse(text, self.catalogue, self._limits, trace, self._functions, self.summaries)

    # --- compiling --------------------------------------------------------------------------------

    def _compiled(self, found: Cut, known: _Known) -> Read:
        """The whole way once more, noting what becomes of the literals, and a template if that succeeds."""
        known.compiled += 1
        trace = Trace(found.places(), found.literals)
        try:
            traced = self._parsed(found.sql, trace)
        except TureenError:
            return self._whole(found.sql)
        finally:
            trace.close()
        template = _template(traced, found, trace)
        fixed = set(range(len(found.texts))) - trace.read | trace.pinned | set(known.fixed or ())
        values = None if template is None else template.values(found)
        if template is None or values is None or not self._is_proved(template, found, fixed):
            return self._whole(found.sql)
        assert isinstance(traced, Query)
        compared = comparisons_of(traced)
        if compared is not None:
            template = replace(template, selection=Selection(template.built(values, found.sql), compared))
        known.fixed = tuple(sorted(fixed))
        key = (found.shape, tuple([found.texts[number] for number in known.fixed]))
        if key not in self._templates:
            _keep(self._templates, key, [])
        self._templates[key].append(template)
        return Read(found.sql, template, None, values)

    def _is_proved(self, template: Template, found: Cut, fixed: set[int]) -> bool:
        """Whether it gives the right query for other literals in all the places that are not fixed."""
        for step in (9, 1, 2, 5, 7, 3, 4, 6, 8):
            texts = [
                text if number in fixed else _other(text, step, found.literals[number].type == STRING)
                for number, text in enumerate(found.texts)
            ]
            other = cut(found.with_texts(texts))
            if other is None or other.shape != found.shape:
                continue
            query = template.instance(other)
            if query is None:
                continue
            try:
                return query == self._parsed(other.sql)
            except TureenError:
                return False
        return False


def _fits(text: str, limits: Limits) -> bool:
    try:
        return len(text.encode()) <= limits.sql_bytes_max
    except UnicodeEncodeError:
        return False


def _keep(into: OrderedDict[Key, Held], key: Key, value: Held, count_max: int = TEMPLATES_MAX) -> None:
    into[key] = value
    if len(into) > count_max:
        into.popitem(last=False)


_LAST_DIGIT = re.compile(r"[0-9](?=[^0-9]*$)", re.DOTALL)
_MANTISSA_DIGIT = re.compile(r"[0-9](?=(?:[eE].*)?$)")


def _other(text: str, step: int, is_string: bool) -> str:
    """Another literal like this one: its last digit moved on; the same for the same literal."""
    digit = (_LAST_DIGIT if is_string else _MANTISSA_DIGIT).search(text)
    if digit is None:
        return text + "x"
    return f"{text[: digit.start()]}{(int(digit[0]) + step) % 10}{text[digit.end() :]}"


# --- from a traced query to a template ------------------------------------------------------------


class _Unknown(Exception):
    """The tree holds something that cannot be built again by its fields."""


def _template(traced: Statement, found: Cut, trace: Trace) -> Template | None:
    if not isinstance(traced, Query):
        return None
    constants: set[Literal] = set()
    try:
        build = _builder(traced, found.sql, constants)
    except _Unknown:
        return None
    assert build is not None  # a query holds its text
    if len(trace.hashed) * len(constants) > CONDITIONS_MAX:
        return None
    differ_from = trace.differ_from | {
        (number, constant)
        for number, literal in trace.hashed.items()
        for constant in constants
        if constant.type == literal.type
    }
    same = {other: one for one, other in sorted(trace.alike, reverse=True)}
    return Template(
        **_facts_of(traced),
        selection=None,
        conversions=tuple(trace.conversions),
        alike=tuple(sorted(trace.alike)),
        differ=_groups({(same.get(one, one), same.get(other, other)) for one, other in trace.differ}),
        differ_from=tuple(differ_from),
        build=build,
    )


def _groups(pairs: set[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Pairs joined into groups, all of whose members must differ: that may ask for more than the pairs do."""
    group_of: dict[int, set[int]] = {}
    for one, other in pairs:
        joined = group_of.get(one, {one}) | group_of.get(other, {other})
        for member in joined:
            group_of[member] = joined
    return tuple({tuple(sorted(group)) for group in group_of.values()})


_PLAIN = (str, int, float, bool, type(None), Decimal, Enum, Type, Stream)


def _builder(node: Any, text: str, constants: set[Literal]) -> Build | None:
    """What makes this part of a query again for other literals; None for a part without any. Literals that
    are not traced are added to ``constants``.
    """
    if isinstance(node, Traced):
        number = node.number
        return lambda values, _: values[number]
    if isinstance(node, Literal):
        constants.add(node)
        return None
    if isinstance(node, str) and node == text:
        return lambda _, sql: sql
    if isinstance(node, _PLAIN):
        return None
    if isinstance(node, tuple):
        parts = [_builder(part, text, constants) for part in node]
        return _of_parts(node, parts, tuple)
    if is_dataclass(node) and not isinstance(node, type):
        names = [field.name for field in fields(node) if field.init]
        held = tuple(getattr(node, name) for name in names)
        kind: Callable[..., Any] = type(node)
        parts = [_builder(part, text, constants) for part in held]
        return _of_parts(held, parts, lambda made: kind(*made))
    raise _Unknown


def _of_parts(
    held: tuple[Any, ...], parts: Sequence[Build | None], make: Callable[[Any], Any]
) -> Build | None:
    if all(part is None for part in parts):
        return None
    made = [part or _constant(one) for part, one in zip(parts, held, strict=True)]
    return lambda values, sql: make([part(values, sql) for part in made])


def _constant(value: Any) -> Build:
    return lambda _, __: value
