"""The life of a shard: it starts, serves, and ends.

    recovering -> (held ->) live -> stopped, fenced or failed

It is *held* while it does not come back by itself (:mod:`broker.shard.comeback`).

A defect, or a store that cannot be read, ends this shard alone (*failed*); another owner of its journal ends
it as well (*fenced*). However it ends, nobody waits for it any more: who wants something is refused.
"""

from __future__ import annotations

from typing import Literal

from broker.base import logs
from broker.runtime.compiling import COMPILATIONS
from broker.shard.parts import ShardParts
from broker.shard.serving import Serving
from broker.shard.setup import ShardSetup
from broker.shard.stalls import Interrupted, Stall
from broker.shard.starting import Starting
from tureen.errors import BrokerUnavailable, Fenced, TureenError

State = Literal["recovering", "held", "live", "failed", "fenced", "stopped"]

log = logs.get()


class Lifecycle:
    """``state`` and ``stall`` may be read from any thread."""

    def __init__(self, parts: ShardParts, setup: ShardSetup, starting: Starting, serving: Serving) -> None:
        self._parts = parts
        self._setup = setup
        self._starting = starting
        self._serving = serving
        self._reached: State = "recovering"

    @property
    def state(self) -> State:
        """How far it is in its life."""
        recovers = self._reached == "recovering"
        waits = recovers and self._starting.held is not None and self._starting.recovered.done()
        return "held" if waits else self._reached

    @property
    def stall(self) -> Stall | None:
        """What keeps the shard from going on; None while nothing does."""
        stall = self._parts.context.stalls.first
        if stall is None and self.state == "recovering":
            return {"code": "recovering", "message": "store and journal are being read"}
        return stall

    def run(self) -> None:
        """Live, in the shard's thread, until it is told to stop or something ends it."""
        number = self._parts.context.number
        COMPILATIONS.watch(self._parts.context.pulse)
        try:
            self._live()
            self._end("stopped", None)
        except Interrupted:
            self._end("stopped", None)
        except Fenced as fenced:
            log.error("shard_fenced", shard=number, reason=fenced.message)
            self._end("fenced", fenced)
            self._setup.on_fenced(number)
        except TureenError as refused:
            log.error("shard_failed", shard=number, code=refused.code, reason=str(refused))
            self._end("failed", refused)
        except BaseException as defect:  # a thread that died without a word would be live for ever
            log.error("shard_failed", shard=number, error=repr(defect), exc_info=defect)
            self._end(
                "failed", TureenError(f"shard {number} failed: {defect!r}", hint="see the broker's log")
            )

    def _live(self) -> None:
        self._starting.come_back()
        self._reached = "live"
        self._starting.known()
        self._starting.give_up_lost_output()
        self._serving.serve(self._starting.removals)

    def _end(self, state: State, error: TureenError | None) -> None:
        parts, context = self._parts, self._parts.context
        if error is not None:
            context.stalls.end(error)
        self._reached = state
        context.pulse.end()
        context.memory.accounts.counted(context.number, None)
        stopped = BrokerUnavailable(f"shard {context.number} has stopped")
        refusal = context.stalls.first or stopped.as_dict()
        jobs = parts.inbox.close(error or stopped, refusal)
        parts.preparations.end()
        self._setup.listener.ended(context.number, error if state == "failed" else None)
        if state in ("stopped", "fenced"):
            parts.preparations.stop()
        parts.streams.close()
        parts.ingestion.close()
        parts.outbox.close()
        self._starting.close()
        self._starting.known()
        # Commands that were not carried out are said again to the next owner.
        if state != "stopped":
            for job in jobs:
                job.refuse(refusal)
