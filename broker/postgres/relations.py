"""What clients see as relations: streams, tables, views, and registered queries by their names.

    public    streams, tables and views, and queries whose names are none of these
    queries   every query that has a name

A source and a query may have one name; without a schema it is the source's, as in any statement. A query may
be named by its handle as well, which is all that opens it for who only reads: names open answers for the
operator alone, who could ask for the same rows anyway.

Read on the event loop. Cost: a name is found in O(1); the list of all is made anew where something changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from broker.base.entries import QueryEntry
from broker.http.named import known, opened
from broker.http.requests import is_handle
from broker.node.materialized import materialized_by
from broker.node.node import Node
from engine.language.query import Describe, Query
from engine.model.period import Period, period_names
from engine.model.source import Stream
from engine.model.types import TIMESTAMP, Type
from tureen.errors import BrokerUnavailable, TureenError
from tureen.protocol import query_id

RELATIONS_MAX = 10_000
"""Queries that the catalogue lists, the first by name; others can be asked all the same."""

Columns = tuple[tuple[str, Type], ...]
RelationKind = Literal["stream", "table", "view", "query"]


@dataclass(frozen=True, slots=True)
class Relation:
    """kind: what it is. key: columns of a table's key. about: the text that makes it. required: columns that
    are NOT NULL.
    """

    schema: str
    name: str
    kind: RelationKind
    columns: Columns
    key: tuple[str, ...] = ()
    about: str = ""
    required: frozenset[str] = frozenset()


def over_period(columns: Columns, period: Period | None) -> Columns:
    """The columns of an answer over a period; None: of one instant, these."""
    if period is None:
        return columns
    return (*columns, *((name, TIMESTAMP) for name in period_names(name for name, _ in columns)))


class Relations:
    """The relations of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._listed: tuple[object, list[tuple[str, str | None]], tuple[Relation, ...]] | None = None
        self._columns: dict[str, Columns] = {}
        """By what a query says; forgotten with the catalogue that it was read against."""
        self._against: object = None

    @property
    def are_told(self) -> bool:
        """Whether what stands is known: the control process has told of all that there is."""
        return self._node.life.reconciled

    def require_told(self) -> None:
        """Raise BrokerUnavailable until what stands is known: till then nothing seems to be there."""
        if not self.are_told:
            raise BrokerUnavailable("the registry is still being read", hint="try again in a second")

    def is_source(self, name: str) -> bool:
        """Whether a stream, table or view has the name."""
        return name in self._node.directory.catalogue

    def is_materialized(self, name: str) -> bool:
        """Whether a view has the name whose answer a query of that name keeps."""
        return materialized_by(self._node.directory, name) is not None

    def query(self, name: str, schema: str | None = None) -> str | None:
        """The id of the query that a relation without a source's name means; None: there is none.

        schema: ``queries``, ``public`` or none. Names are found as they are written, else in lower case.
        """
        if schema not in (None, "public", "queries"):
            return None
        directory = self._node.directory
        found = directory.queries.names.id_of(name)
        if found is None and is_handle(name) and directory.found(opened_id := query_id(name)) is not None:
            return opened_id
        return found

    def open(self, name: str, operator: bool) -> str:
        """The id of the query whose answer a caller may have by this name or handle. Raises HandleNeeded,
        UnknownQuery, BrokerUnavailable.
        """
        return known(self._node, name, operator) if operator else opened(self._node, name)

    def query_columns(self, identifier: str) -> Columns:
        """Names and types of a query's answer. Raises what reading its text raises."""
        entry = self._node.directory.found(identifier)
        return () if entry is None or entry.sql is None else self._columns_of(entry)

    def source_columns(self, name: str) -> Columns:
        """Those of a stream, a table or a view. Raises what reading its text raises."""
        stands = self._node.directory.catalogue[name]
        if isinstance(stands, Stream):
            return tuple((one.name, one.type) for one in stands.schema.fields)
        quoted = '"' + name.replace('"', '""') + '"'
        statement = self._node.directory.parse(f"DESCRIBE {quoted}")
        assert isinstance(statement, Describe)
        return tuple(statement.columns)

    def all(self) -> tuple[Relation, ...]:
        """Every relation, sources first. What cannot be read now is left out."""
        directory = self._node.directory
        names = sorted(islice(directory.queries.names.all(), RELATIONS_MAX))
        queries = [(name, self._said(name)) for name in names]
        if self._listed is None or self._listed[0] is not directory.catalogue or self._listed[1] != queries:
            self._listed = directory.catalogue, queries, (*self._sources(), *self._queries(names))
        return self._listed[2]

    def _said(self, name: str) -> str | None:
        identifier = self._node.directory.queries.names.id_of(name)
        entry = None if identifier is None else self._node.directory.found(identifier)
        return None if entry is None else entry.said

    def _sources(self) -> list[Relation]:
        found = []
        catalogue = self._node.directory.catalogue
        for name in sorted(catalogue):
            stands = catalogue[name]
            kind: RelationKind = "view"
            key: tuple[str, ...] = ()
            required: frozenset[str] = frozenset()
            if isinstance(stands, Stream):
                kind, key = ("table" if stands.is_table else "stream"), stands.key
                required = frozenset(one.name for one in stands.schema.fields if not one.nullable)
            elif self.is_materialized(name):
                kind = "query"
            with contextlib.suppress(TureenError):
                about = "" if isinstance(stands, Stream) else stands.sql
                columns = self.source_columns(name)
                found.append(Relation("public", name, kind, columns, key, about, required | {*key}))
        return found

    def _queries(self, names: Sequence[str]) -> list[Relation]:
        found = []
        for name in names:
            identifier = self._node.directory.queries.names.id_of(name)
            entry = None if identifier is None else self._node.directory.found(identifier)
            if entry is None or entry.sql is None:
                continue
            with contextlib.suppress(TureenError):  # it waits for a stream
                columns = self._columns_of(entry)
                schema = "queries" if self.is_source(name) else "public"
                found.append(Relation(schema, name, "query", columns, about=entry.sql))
        return found

    def _columns_of(self, entry: QueryEntry) -> Columns:
        said = entry.said
        assert said is not None
        directory = self._node.directory
        if self._against is not directory.catalogue or len(self._columns) > 2 * RELATIONS_MAX:
            self._columns, self._against = {}, directory.catalogue
        found = self._columns.get(said)
        if found is None:
            statement = directory.parse(entry.sql or "", entry.parameters)
            found = self._columns[said] = tuple(statement.columns) if isinstance(statement, Query) else ()
        return found
