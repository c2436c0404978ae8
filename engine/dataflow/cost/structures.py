"""How the rows of an edge are kept until they leave, and what that costs.

    structure   insert             expire                      take out early
    fifo        1                  1                           -
    list        1                  all entries, each time      all entries, each time
    calendar    1                  1, and a sort               all entries of a partition
    indexed     1                  1, and a sort               1
    hashed      1                  a tuple for each row, which finds its place
    shared      1                  a look for partners for each row and size of windows; rows go unread
    groups      1, by the group    1

Entries of linked lists differ from what is really visited in three places: an ordered list is searched for a
place where arrays sort a partition when the clock enters it; a list is scanned for each arrival where arrays
are scanned once a step, which is as exact, since instants decide; and a bucket is searched for a row where an
index knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Literal

from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.cost.flows import Flow
from engine.dataflow.policy import KeptEdge
from engine.model.maintenance import UnitCosts

Structure = Literal["groups", "fifo", "list", "calendar", "indexed", "hashed", "shared"]

ENTRY_BYTES = {"fifo": 12, "list": 12, "calendar": 12.5, "indexed": 16.5, "hashed": 4, "groups": 0}
"""Beside the row itself, which takes :data:`ROW_BYTES`."""

ROW_BYTES = 48
"""Instants, id, key and owner of a row that a join or an output keeps."""

SHARED_BYTES = 28
"""Instant, ordinal, key, owners and place before of a row that stands once for windows of all sizes."""


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that costs, per second.

    listed: entries of scanned lists. entries: those that are really looked at, put in or taken out. ns: their
    time.
    """

    name: str
    listed: float
    entries: float
    ns: float


@dataclass(frozen=True, slots=True)
class KeptState:
    """State. of: whose rows: left, right, input, output. rows: that are there at a time, those included that
    left and were not let go of yet. partitions: of a calendar.
    """

    of: str
    structure: Structure
    rows: float
    partitions: int | None = None

    @property
    def nbytes(self) -> float:
        """Bytes, beside those of the sources."""
        if self.structure == "shared":
            return self.rows * SHARED_BYTES
        return self.rows * (ROW_BYTES + ENTRY_BYTES[self.structure])


def kept(of: str, flow: Flow, edge: KeptEdge | None, settings: StateSettings, *, eager: bool) -> KeptState:
    """State over an edge. edge: where its exits are known; eager: somebody sees each at its instant."""
    if edge is None:
        return KeptState(of, "hashed", flow.rows)
    rows = flow.rows if eager else flow.rows * (1 + settings.expiry_lazy_fraction / 2)
    policy = edge.policy
    if policy.strategy == "direct":
        return KeptState(of, "list", rows)
    if edge.in_order and not edge.is_early:
        return KeptState(of, "fifo", rows)
    partitions = settings.partitions_of(edge.span, policy.partitions)
    indexed = edge.is_early and policy.structure == "indexed"
    return KeptState(of, "indexed" if indexed else "calendar", rows, partitions)


def terms(
    state: KeptState,
    flow: Flow,
    edge: KeptEdge | None,
    units: UnitCosts,
    values: float,
    settings: StateSettings,
    *,
    eager: bool,
) -> list[Term]:
    """What it costs to keep the rows of an edge. values: how many they have of what hashed state goes by."""
    rows, leaving = state.rows, flow.leaving
    found = [Term("insert", flow.rate, flow.rate, flow.rate * units.insert_ns)]
    if edge is None:
        bucket = rows / max(1.0, values)
        listed = leaving * (1 + bucket / 2)
        return [*found, Term("expire", listed, 2 * leaving, leaving * (units.probe_ns + units.delete_ns))]
    early, timely = leaving * flow.premature, leaving * (1 - flow.premature)
    looks = _looks_per_s(flow, edge, settings, eager=eager)
    match state.structure:
        case "fifo":
            found.append(Term("expire", leaving, leaving, leaving * units.delete_ns))
        case "list":
            scans = max(looks, flow.rate) if eager else looks
            ns = looks * rows * units.visit_ns + leaving * units.delete_ns
            found.append(Term("expire", scans * rows + leaving, looks * rows + leaving, ns))
            if early:
                visits = rows * flow.steps_per_s
                found.append(Term("negative", early * rows / 2, visits, visits * units.visit_ns))
        case _:
            assert state.partitions is not None
            inside = rows / state.partitions
            if eager:  # sorted as the clock enters a partition
                found[0] = Term("insert", flow.rate * (1 + inside / 2), flow.rate, found[0].ns)
                ns = timely * (units.delete_ns + units.sort_ns * log2(2 + inside))
                found.append(Term("expire", timely, 2 * timely, ns))
            else:
                found.append(Term("expire", timely, timely, timely * units.delete_ns))
            if early:
                found.append(_early(state, early, flow, units))
    return found


def _early(state: KeptState, early: float, flow: Flow, units: UnitCosts) -> Term:
    """Rows that leave before their exit: those of a step are searched for together, each partition once."""
    assert state.partitions is not None
    if state.structure == "indexed":
        return Term("negative", early, 2 * early, early * (units.probe_ns + units.delete_ns))
    steps = max(flow.steps_per_s, 1e-9)
    searched = min(state.partitions, early / steps) * steps
    visits = searched * state.rows / state.partitions
    ns = visits * units.visit_ns + early * units.delete_ns
    return Term("negative", early * state.rows / 2, visits + early, ns)


def _looks_per_s(flow: Flow, edge: KeptEdge, settings: StateSettings, *, eager: bool) -> float:
    """How often exits are looked for: at the end of each step, or when they are late enough."""
    if eager:
        return flow.steps_per_s
    return min(flow.steps_per_s, 2_000 / edge.lazy(settings))
