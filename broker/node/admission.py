"""What registrations mean against what stands, or why they cannot stand, and where those emit that do.

The part of a registration before its shard hears of it. May ask Kafka and the schema registry, so it runs in
another thread than the event loop's, for one batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from broker.node.broken import BrokenQueries
from broker.node.directory import Directory
from broker.shard.emission import log_defects
from broker.shard.shard_command import Bound
from broker.shard.stalls import Stall
from engine.changes.output import output_of
from engine.language.query import Query
from engine.language.templates import BoundTemplate
from engine.model.defects import refusal_of
from engine.model.source import SourceName, Stream
from engine.operators.gather import schema_of
from topics.control_records import Command
from topics.outputs import Outputs, Readiness, destination, facts
from topics.wording import said
from tureen.errors import LimitExceeded, NotSupported, OptionRefused, QueryError, TureenError, UnknownSource
from tureen.protocol import TopicNames


@dataclass(frozen=True, slots=True)
class Admitted:
    """A query that may stand: its text, bound. output: where its changes go, as lists show it, if it emits
    them.
    """

    bound: Bound
    output: dict[str, Any] | None = None

    @property
    def template(self) -> BoundTemplate:
        """What its text means."""
        template = self.bound.read.template
        assert template is not None
        return template


class Admission:
    """Binds registrations, and says which may stand."""

    def __init__(
        self,
        names: TopicNames,
        directory: Directory,
        outputs: Outputs,
        broken: BrokenQueries,
        failure_of: Callable[[str], Stall | None],
    ) -> None:
        """failure_of: why the shard of a source has failed; None where it has not."""
        self._failure_of = failure_of
        self._names = names
        self._directory = directory
        self._outputs = outputs
        self._broken = broken

    def bind_all(self, commands: Sequence[Command]) -> list[Admitted | TureenError | None]:
        """For each command of distinct queries: that it may stand, or why it may not; None of a removal, and
        of what is refused by its own ``error``. What it emits until now is released.
        """
        meant = [self._meant(command) for command in commands]
        streams = self._directory.streams()
        ready = Readiness(self._outputs)
        bound: list[Admitted | TureenError | None] = []
        for command, found in zip(commands, meant, strict=True):
            self._outputs.release(command["name"])
            try:
                bound.append(self._admitted(command, found, streams, ready))
            except Exception as error:  # noqa: BLE001  (it is of this command alone)
                self._outputs.release(command["name"])
                bound.append(_refusal(command, error))
        return bound

    def _admitted(
        self,
        command: Command,
        found: Admitted | TureenError | None,
        streams: Mapping[SourceName, Stream],
        ready: Readiness,
    ) -> Admitted | TureenError | None:
        """Raises the refusal of its output."""
        if not isinstance(found, Admitted) or not found.template.emits:
            return found
        query = found.bound.read.query
        to = destination(self._names, output_of(query, streams))
        assert to is not None
        columns = schema_of(query.columns)
        self._outputs.agree(command["name"], to, query.sources)
        if not self._stands(command):
            ready.check(to, columns)
        return replace(found, output=facts(to, columns))

    def kept(self, name: str) -> None:
        """Another text for a query was refused, so it emits as before. Any thread."""
        entry = self._directory.queries[name]
        if entry.output is None or entry.sql is None:
            return
        query = self._directory.parse(entry.sql, entry.parameters)
        assert isinstance(query, Query)
        to = destination(self._names, output_of(query, self._directory.streams()))
        assert to is not None
        self._outputs.agree(name, to, query.sources)

    def _meant(self, command: Command) -> Admitted | TureenError | None:
        """What a registration means, or why it means nothing. CPU only."""
        broken = self._broken.reason(command)
        if command["kind"] != "register" or broken is not None:
            return broken
        try:
            given = command.get("options", {})
            bound = self._directory.admitted(given, command["sql"], command.get("parameters"))
        except UnknownSource as missing:
            return self._explained(missing)
        except (OptionRefused, QueryError, LimitExceeded) as refused:
            return refused
        except TureenError:
            raise
        except Exception as defect:  # noqa: BLE001  (it is of this text alone)
            return _refusal(command, defect)
        if bound.read.template is not None:
            return Admitted(bound)
        return no_select()

    def _explained(self, missing: UnknownSource) -> UnknownSource:
        """A source whose shard has failed cannot be created again, but it is no mistake of the query."""
        failure = self._failure_of(missing.name)
        if failure is not None:
            missing.message = f"the shard of {missing.name!r} has failed: {failure['message']}"
            missing.hint = failure.get("hint")
        return missing

    def _stands(self, command: Command) -> bool:
        """Whether it says what stands: its shard then waits for its output, where that is away."""
        old = self._directory.queries.get(command["name"])
        return (
            old is not None
            and old.shard is not None
            and old.said == said(command["sql"], command.get("parameters"))
        )


def _refusal(command: Command, error: Exception) -> TureenError:
    """Why a command is refused; a defect goes to the log."""
    refused = refusal_of(error)
    log_defects({command["name"]: refused})
    return refused


def no_select() -> NotSupported:
    """The refusal of a text that means something else."""
    return NotSupported(
        "only a SELECT can be asked or registered",
        hint="run others as statements: POST /statements, client.execute(...), tureen sql",
    )
