"""Commands of a shard carried out: as steps, in the books of what stands, and by its streams.

Commands that change nothing make no step. Used by the shard's thread alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from broker.base.counts import Counts
from broker.base.internal import Outcome
from broker.shard.emission import Emission
from broker.shard.inbox import Job
from broker.shard.outbox import Outgoing
from broker.shard.preparations import Preparations
from broker.shard.saving import Saving
from broker.shard.shard_command import ShardCommand, step_bodies
from broker.shard.shard_state import ShardState
from broker.shard.steps import Steps
from broker.shard.streams import Streams
from engine.model.source import SourceName, Stream
from engine.model.step import Heartbeat, Unregister
from engine.queries.summaries import NamedSummary


class Execution:
    """Carries out the commands of one shard."""

    def __init__(
        self,
        shard_state: ShardState,
        steps: Steps,
        streams: Streams,
        emission: Emission,
        saving: Saving,
        preparations: Preparations,
        counts: Counts,
    ) -> None:
        self._state = shard_state
        self._steps = steps
        self._streams = streams
        self._emission = emission
        self._saving = saving
        self._preparations = preparations
        self._counts = counts

    def carry_out_all(self, jobs: Sequence[Job], outgoing: Outgoing) -> bool:
        """Carry out what was prepared for this shard's own doing, then what came. Returns whether there was
        any command. Raises Interrupted.
        """
        removals = [] if self._steps.is_full else self._preparations.removals()
        if removals:
            self.carry_out(removals, outgoing)
        for job in jobs:
            job.outcomes = self.carry_out(job.commands, outgoing)
        self._preparations.apart.go_on(self._steps, outgoing)
        return bool(jobs or removals)

    def carry_out(self, commands: Sequence[ShardCommand], outgoing: Outgoing) -> list[Outcome]:
        """Make the steps of some commands, in order; one outcome each. Raises Interrupted."""
        self._saving.changed()
        self._steps.engine.learn([command.bound for command in commands if command.bound is not None])
        awaited = self._preparations.awaited(self._steps.engine, commands)
        outcomes: list[Outcome] = []
        left = [one for place, one in enumerate(commands) if place not in awaited]
        began_s = time.monotonic()
        for group in self._preparations.groups(left):
            later = self._preparations.put_off(group, time.monotonic() - began_s)
            if later:
                outcomes += later
                continue
            self._preparations.begin(group)
            outcomes += self._carried_out(group, outgoing)
            self._preparations.done(group)
        told = iter(outcomes)
        return [awaited.get(place) or next(told) for place in range(len(commands))]

    def _carried_out(self, commands: Sequence[ShardCommand], outgoing: Outgoing) -> list[Outcome]:
        outcomes: list[Outcome] = [{"state": "RUNNING", "error": None, "position": None}] * len(commands)
        for made in step_bodies(
            commands,
            self._state.queries,
            self._state.sources,
            self._state.summaries,
            self._steps.body_bytes_max,
            self._steps.engine.continues,
        ):
            failed: Mapping[str, Exception] = {}
            if isinstance(made.body, Heartbeat):
                (place,) = made.places
                outcomes[place] = self._heartbeat(made.body, commands[place], outgoing)
                continue
            if made.body is not None:
                failed = self._steps.make(made.body, outgoing).failed
                if isinstance(made.body, Unregister):
                    self._state.forget(made.body.query_ids)
            for place in made.places:
                command = commands[place]
                error = failed.get(command.name)
                outcomes[place] = command.outcome(self._steps.engine.position, error)
                if error is None and made.body is not None:
                    self._follow(command)
        return outcomes

    def _heartbeat(self, body: Heartbeat, command: ShardCommand, outgoing: Outgoing) -> Outcome:
        """A step where it raises a watermark, else none. What waits in the log is known here alone."""
        raised = self._steps.engine.needs.raised_by(body.source, body.below)
        error = None
        if raised:
            stream = self._streams.by_name[body.source]
            lagging = stream.intake.lagging if stream.intake is not None else frozenset()
            error = self._steps.make(replace(body, lagging=lagging), outgoing).failed.get(body.source)
            if error is None:
                stream.pace.stepped(self._steps.clock_ms, raised, lagging)
        told = command.outcome(self._steps.engine.position, error)
        return told if error is not None else {**told, "raised": sorted(raised)}

    def _follow(self, command: ShardCommand) -> None:
        """Do what a command that was applied asks of the shard beside its engine."""
        match command.kind:
            case "register":
                if command.name not in self._emission.broken:
                    self._state.queries[command.name] = command.standing
            case "create":
                assert command.source is not None
                self._state.sources[command.name] = command.source
                if isinstance(command.source, Stream):
                    self._streams.add([(command.source, {})], self._steps.now_ms())
            case "create_summary":
                assert command.summary is not None
                self._state.summaries[command.name] = NamedSummary(command.summary, command.sql)
            case "drop_summary":
                del self._state.summaries[command.name]
            case "drop":
                if isinstance(self._state.sources.pop(command.name), Stream):
                    self._streams.drop(SourceName(command.name))
                    self._counts.forget(command.name)
