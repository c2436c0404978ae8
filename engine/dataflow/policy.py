"""How the operators of a query keep rows until they leave (Golab and Oezsu, section 5.3).

    nt        every exit is sent through the plan as a negative tuple; state is hashed
    direct    exits are known with the rows; state stands in the order of arrival, and is scanned
    upa       exits are known; each state is kept as the update pattern of its input asks for

Answers and changes are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.dataflow.buffers.buffer import Buffer
from engine.dataflow.buffers.calendar import Calendar
from engine.dataflow.buffers.fifo import FifoBuffer
from engine.dataflow.buffers.indexed import Indexed
from engine.dataflow.buffers.scanned import ScannedBuffer
from engine.dataflow.buffers.settings import StateSettings
from engine.model.maintenance import QueryOptions, Strategy, Structure


@dataclass(frozen=True, slots=True)
class Policy:
    """Says how the operators of a query keep rows. structure: of the state over an edge on which rows leave
    before their time, for ``upa`` alone: partitions that a negative tuple searches; all exits as negative
    tuples, as ``nt`` has them; or partitions with an index. partitions: how many a calendar has; None: as
    many as :mod:`engine.dataflow.buffers.settings` says.
    """

    strategy: Strategy = "nt"
    structure: Structure = "partitioned"
    partitions: int | None = None
    counts: bool = False
    """Where exits are told, DISTINCT counts the rows of each value, which the classic form keeps."""
    one_store: bool = False
    """Where exits are told, joins keep the rows of a stream once for windows of all sizes."""

    @classmethod
    def asked_for(cls, options: QueryOptions) -> Policy | None:
        """What a registration asks for; None: any. Where it names no structure it gets the one that keeps
        least: above a negation all exits are told.
        """
        if options.strategy is None:
            return None
        return cls(options.strategy, options.structure or "negative", options.partitions)

    @property
    def knows_exits(self) -> bool:
        """Whether exits are told with the rows."""
        return self.strategy != "nt"


TOLD = Policy(counts=True)
"""What queries have where exits cannot be known."""

ONE_STORE = Policy(counts=True, one_store=True)
"""What queries have that say nothing else."""


@dataclass(frozen=True, slots=True)
class KeptEdge:
    """An edge with known exits, as a node sees it that keeps its rows."""

    policy: Policy
    span: int
    """From entry to exit a row is there for so many halves of a ms at most."""
    in_order: bool
    """Rows leave in the order in which they came: WKS."""
    is_early: bool = False
    """Rows may leave earlier than they were told to: STR."""

    def buffer(self, settings: StateSettings) -> Buffer:
        """Where places of rows stand by exit."""
        policy = self.policy
        if policy.strategy == "direct":
            return ScannedBuffer(settings.capacities)
        if self.in_order and not self.is_early:
            return FifoBuffer(settings.capacities)
        if self.is_early and policy.structure == "indexed":
            return Indexed(self.span, policy.partitions, settings)
        return Calendar(self.span, policy.partitions, settings)

    def lazy(self, settings: StateSettings) -> int:
        """For how many halves of a ms rows that left may stand where nobody has to see them go."""
        return settings.lazy_interval(self.span)
