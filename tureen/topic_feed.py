"""A result topic as events: what :meth:`tureen.Client.changes` tells by HTTP, read from Kafka alone.

    for event in topic_events(transport, handle):
        ...                    # SnapshotEvent, then ChangesEvent; EndEvent when the query is gone

Where the changes are is what ``.status`` tells (``output``), so that the queries of a broker and of a
scale-out are followed alike. The first event is the answer that the committed records fold to; of DSTREAM and
RSTREAM, which do not fold, it has no rows and what is on the topic follows as changes. An event has changes
of one position, as they were read: where several write for a query, those of a step may be several events.

Values are as JSON has them: columns are those of the rows, their types what JSON shows. While there was no
row yet the columns are unknown and none are told; once there is one, another SnapshotEvent without rows tells
them. Positions are those of steps, and cannot be gone on from. Cost: O(records of the topic's partitions) to
begin with; memory O(rows), of ISTREAM all that ever came.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from tureen.approximation import Approximation
from tureen.changes import Change, ChangesEvent, EndEvent, Event, Operator, SnapshotEvent
from tureen.columns import Column
from tureen.errors import KafkaUnavailable, NotSupported, TureenError
from tureen.facts import QueryStatus
from tureen.protocol import TopicNames
from tureen.results import ResultChange, ResultTopic, Row
from tureen.topic_client import TopicTransport

READ_S = 60.0
"""A topic whose end is not reached within this, or lies in a transaction that stays open, is no answer."""

ASKED_EVERY_S = 0.5


def topic_events(
    kafka: Mapping[str, Any], service_id: str, handle: str, *, live: bool = True
) -> Generator[Event]:
    """The answer that is on the result topic of a query, then its changes; live=False ends behind the answer.

    Raises UnknownQuery, NotSupported (it writes no topic, or one that is not JSON), the error of a query that
    does not stand, KafkaUnavailable, TopicMissing.
    """
    transport = TopicTransport({"log_level": 0, **kafka}, service_id, READ_S)
    with closing(transport), closing(transport.standing(handle)) as standing:
        status = next(standing)
        output = _output(status)
        form, operator = output["format"], output["operator"]
        folds = operator not in ("dstream", "rstream")
        heard: list[ResultChange] = []
        live_now = not folds

        def told(one: ResultChange) -> None:
            if live_now:
                heard.append(one)

        with ResultTopic(
            kafka,
            status.query_id,
            into=_into(str(output["topic"]), service_id),
            form=form,
            operator=operator,
            service_id=service_id,
            told=told,
        ) as results:
            if not results.read(READ_S):
                raise KafkaUnavailable(
                    f"{results.topic} could not be read through in {READ_S:g} s",
                    hint="it is large, or a transaction on it stays open; try again",
                )
            live_now = True
            events = _Events(operator, status.approximation)
            yield events.snapshot(results.rows() if folds else [], results)
            yield from events.changes(heard)
            while live:
                heard.clear()
                results.poll(ASKED_EVERY_S)
                yield from events.changes(heard)
                if heard:
                    continue
                # It is told that a query is gone beside its last rows: all that is there comes before.
                now = next(standing, None)
                if now is None:
                    yield EndEvent(results.position, "unregistered")
                    return
                if now.state == "ERROR":
                    raise now.error or TureenError("this query is no longer registered")
            yield EndEvent(results.position, "caught_up")


class _Events:
    """Rows as JSON has them, as events have them."""

    def __init__(self, operator: Operator, approximation: tuple[Approximation, ...]) -> None:
        """approximation: of the query, as long as there is no record to tell it."""
        self._operator: Operator = operator
        self._approximation = approximation
        self._columns: tuple[Column, ...] = ()

    def snapshot(self, rows: Sequence[Row], results: ResultTopic) -> SnapshotEvent:
        self._columns = columns_of_rows(rows)
        found = [self._row(row) for row in rows]
        tags = self._approximation if results.position is None else results.approximation
        return self._snapshot(results.position, results.at_ms, found, tags)

    def changes(self, heard: Sequence[ResultChange]) -> Iterator[Event]:
        for (position, at_ms), told in groupby(heard, lambda one: (one.position, one.at_ms)):
            part = list(told)
            tags = part[-1].approximation
            if not self._columns:
                self._columns = columns_of_rows([one.row for one in part])
                yield self._snapshot(position, at_ms, [], tags)
            changes = tuple(Change(one.weight, at_ms or 0, self._row(one.row)) for one in part)
            yield ChangesEvent(position or "", at_ms, self._columns, changes, self._operator, tags)

    def _snapshot(
        self,
        position: str | None,
        at_ms: int | None,
        rows: list[tuple[Any, ...]],
        tags: tuple[Approximation, ...],
    ) -> SnapshotEvent:
        columns, operator = self._columns, self._operator
        return SnapshotEvent(position or "", at_ms, columns, tuple(rows), operator, approximation=tags)

    def _row(self, row: Row) -> tuple[Any, ...]:
        return tuple(_hashable(row.get(column.name)) for column in self._columns)


def columns_of_rows(rows: Sequence[Row]) -> tuple[Column, ...]:
    """The columns of rows as JSON has them, with the type of the first value that is there.

    >>> columns_of_rows([{"city": "Bern", "n": None}, {"city": "Zug", "n": 2}])
    (Column(name='city', type='STRING'), Column(name='n', type='BIGINT'))
    """
    types: dict[str, str | None] = {}
    for row in rows:
        for name, value in row.items():
            if types.get(name) is None:
                types[name] = _type(value)
        if None not in types.values():
            break
    return tuple(Column(name, found or "STRING") for name, found in types.items())


def _type(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        inner = next((found for one in value if (found := _type(one)) is not None), "STRING")
        return f"ARRAY<{inner}>"
    return {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}.get(type(value), "STRING")


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _output(status: QueryStatus) -> Mapping[str, Any]:
    """Where its changes are. Raises what keeps it from having any."""
    if status.state in ("ERROR", "PENDING"):
        raise status.error or TureenError(f"this query is {status.state}")
    output: Mapping[str, Any] | None = status.facts.get("output")
    if output is None:
        raise NotSupported(
            "this query writes no result topic: its text has no EMIT CHANGES",
            hint="with a broker, `tureen watch HANDLE` follows it over HTTP",
        )
    if output.get("encoding") != "json":
        raise NotSupported(
            f"{output['topic']} is written as {output.get('encoding')}, which is not read here",
            hint="a consumer with your schema registry's deserializers reads it",
        )
    return output


def _into(topic: str, service_id: str) -> str | None:
    """The name behind INTO, as :class:`tureen.results.ResultTopic` takes it."""
    names = TopicNames(service_id)
    return None if topic == names.results else topic.removeprefix(names.results_into(""))
