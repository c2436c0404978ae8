"""The operators that the changes of a query come from, as EXPLAIN shows them: a tree, the answer at its root.

Their update patterns follow the rules of :mod:`engine.language.update_patterns`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, replace

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.dataflow.operators.latest import LatestSpec
from engine.dataflow.plan import Combined, Exits, Joined, OpaqueLeaf, OperatorOver, Plan, ScanLeaf, key_of
from engine.language.query import Scan
from engine.language.render import render_scan, render_stage, render_window
from engine.language.update_patterns import Pattern, PatternEdge, edge_above, edges_of
from engine.model.approximation import Expected
from engine.model.source import SourceName
from engine.windows.clauses import RowWindow


@dataclass(frozen=True, slots=True)
class NodeState:
    """What an operator of a graph keeps, and for whom."""

    queries: int = 0
    """Followed queries whose changes come through it."""
    columns: int = 0
    """What these differ in: several queries may be one column."""
    rows: int = 0
    """Rows that are kept, of all queries: groups, or rows that a join waits with."""
    bytes: int = 0
    """What they take."""
    visited: int = 0
    """Rows that it looked at since it came."""
    premature: float | None = None
    """How large a share of the rows that came into the answer of a negation left it before their own exit.
    None: another operator, or no rows came.
    """
    entity: str | None = None
    """Its id among the entities of its shard; None: it is not there, since nobody follows it."""


@dataclass(frozen=True, slots=True)
class OperatorTree:
    """One operator, and those that it reads."""

    operator: str
    """What it does: scan, latest rows, filter, project, join, group, distinct, top-k, recompute and so on."""
    details: tuple[str, ...]
    """With what, a line each."""
    pattern: str
    """The update pattern of what leaves it: MON, WKS, WK, ``WK by key`` or STR."""
    reason: str | None
    """Why it works its rows out again at each step that concerns it; None: it takes what changed alone."""
    state: NodeState
    inputs: tuple[OperatorTree, ...] = ()
    cost: OperatorCost | None = None
    """None where nothing was measured."""
    expected: Expected | None = None
    """The precision of what it gives; None where all is exact, or nothing is known."""


@dataclass(frozen=True, slots=True)
class EstimatedState:
    """State of an operator, as it is estimated."""

    of: str
    """Whose rows: those of the left or right input, of the only one, or of the output."""
    structure: str
    partitions: int | None
    """Partitions of a calendar; None: another structure."""
    rows: float


@dataclass(frozen=True, slots=True)
class CostTerm:
    """What some part of the work of an operator costs a second."""

    name: str
    listed: float
    """Entries of scanned lists."""
    entries: float
    """Entries that are really looked at, put in or taken out."""
    ns: float


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """What an operator is estimated to give, keep and cost."""

    rows_per_s: float
    """Rows that enter what leaves it."""
    rows: float
    """Rows that are there at a time."""
    premature: float
    """The share of them that leave before their time."""
    kept: tuple[EstimatedState, ...]
    terms: tuple[CostTerm, ...]


KEPT_PAIRS = "pairs are kept by the ids of their rows: a left row may go after its partner changed"
"""What a join with a table does above an edge on which rows leave before their time, where a negation could
not be put above it."""

ONE_STORE = "rows are kept once for windows of all sizes"
"""What a join of two streams by windows of time does, or MIN and MAX of one, that queries with other windows
share.
"""

HELD = (
    "rows stay, whatever RETAIN says, until constraints let joins forget them: changes are complete while "
    "rows keep these"
)
"""What a scan says whose rows leave by constraints alone (:mod:`engine.dataflow.releases`)."""

StateOf = Callable[[Hashable], NodeState]
"""What the node with a key keeps; nothing, where there is none."""

ExpectedOf = Callable[[Scan | Stage], Expected | None]
"""The precision of what a scan or a stage gives; None: all is exact, or nothing is known."""


def operator_tree(
    plan: Plan, tables: Container[SourceName], state_of: StateOf, expected_of: ExpectedOf = lambda _: None
) -> OperatorTree:
    """The operators of a plan. tables: which sources are."""
    return _Walk(tables, state_of, expected_of).walk(plan)[0]


_Walked = tuple[OperatorTree, PatternEdge, Hashable]
"""An operator, what leaves it, and its key."""


@dataclass(frozen=True, slots=True)
class _Walk:
    tables: Container[SourceName]
    state_of: StateOf
    expected_of: ExpectedOf

    def walk(self, plan: Plan) -> _Walked:
        """A plan's operators, from its leaves up."""
        tree, edge, key = self._plain(plan)
        said = _said(plan)
        expected = None if said is None else self.expected_of(said)
        return (tree if expected is None else replace(tree, expected=expected)), edge, key

    def _plain(self, plan: Plan) -> _Walked:
        tables, state_of = self.tables, self.state_of
        match plan:
            case ScanLeaf(_, scan, held=held):
                edge, key = PatternEdge.of_scan(scan, tables), key_of(plan)
                tree = _scan(scan, tables, edge, state_of(key))
                return replace(tree, details=(*tree.details, HELD)) if held else tree, edge, key
            case OpaqueLeaf(query) if not query.stages:
                edge, key = PatternEdge.of_scan(query.scan, tables), key_of(plan)
                return _scan(query.scan, tables, edge, state_of(key)), edge, key
            case OpaqueLeaf(query, reason):
                edge, key = edges_of(query, tables)[-1], key_of(plan)
                lines = f"scan {query.source}", *(render_stage(stage)[0] for stage in query.stages)
                return OperatorTree("recompute", lines, str(edge), reason, state_of(key)), edge, key
            case Exits(below):
                tree, edge, under = self.walk(below)
                key = key_of(plan, under)
                return OperatorTree("exits", (), str(edge), None, state_of(key), (tree,)), edge, key
            case OperatorOver(LatestSpec(), below=below, stage=Scan() as scan):
                tree, _, under = self.walk(below)
                edge, key = PatternEdge.of_scan(scan, tables), key_of(plan, under)
                window = render_window(scan.window)
                return (
                    OperatorTree("latest rows", (window,), str(edge), None, state_of(key), (tree,)),
                    edge,
                    key,
                )
            case OperatorOver(below=below):
                tree, edge, under = self.walk(below)
                key, stages = key_of(plan, under), plan.stages
                for each in stages:
                    edge = edge_above(each, edge, None)
                word, details = _words(*stages)
                if plan.span_ms is not None:
                    details = (*details, ONE_STORE)
                final = () if plan.final is None else plan.final.lines()
                details = (*details, *(f"a group goes when {reason}" for reason in final))
                return OperatorTree(word, details, str(edge), None, state_of(key), (tree,)), edge, key
            case Joined(left=left, right=right, stage=stage, releases=releases):
                one, one_edge, one_key = self.walk(left)
                other, other_edge, other_key = self.walk(right)
                edge = edge_above(stage, one_edge, other_edge)
                key = key_of(plan, one_key, other_key)
                word, details = _words(stage)
                if plan.spans is not None:
                    details = (*details, ONE_STORE)
                if one_edge.pattern is Pattern.STR and stage.join and _is_of_table(stage, tables):
                    details = (*details, KEPT_PAIRS)
                details = (*details, *(() if plan.early is None else plan.early.lines()))
                for side, release in zip(("left", "right"), releases, strict=True):
                    details = (*details, *(f"a {side} row goes when {reason}" for reason in release.lines()))
                return OperatorTree(word, details, str(edge), None, state_of(key), (one, other)), edge, key
            case Combined(_, left, right, stage):
                one, one_edge, one_key = self.walk(left)
                other, other_edge, other_key = self.walk(right)
                edge = edge_above(stage, one_edge, other_edge)
                key = key_of(plan, one_key, other_key)
                word, details = _words(stage)
                return OperatorTree(word, details, str(edge), None, state_of(key), (one, other)), edge, key


def _said(plan: Plan) -> Scan | Stage | None:
    """What of the query an operator is; of the first stages together the last one."""
    match plan:
        case ScanLeaf(scan=scan):
            return scan
        case OpaqueLeaf(query):
            return query.stages[-1] if query.stages else query.scan
        case OperatorOver(stage=stage) | Joined(stage=stage) | Combined(stage=stage):
            return stage
        case Exits():
            return None


def _scan(scan: Scan, tables: Container[SourceName], edge: PatternEdge, state: NodeState) -> OperatorTree:
    reason = _rescanned(scan, tables)
    word = "scan" if reason is None else "recompute"
    return OperatorTree(word, (scan.source, *render_scan(scan)), str(edge), reason, state)


def _rescanned(scan: Scan, tables: Container[SourceName]) -> str | None:
    """Why the rows of a scan are found again at each step; None where those that move are found alone."""
    if scan.source in tables:
        return None
    if isinstance(scan.window, RowWindow) and scan.assignment is not None:
        return "[ROWS n] after a table function: rows are put into windows again"
    return None


def _is_of_table(stage: Stage, tables: Container[SourceName]) -> bool:
    """Whether the right rows of a join are those of a table, or its versions."""
    return stage.right_input is not None and stage.right_input.source in tables


@asked_of("text")
def operator_words(stage: Stage, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """What an operator is called, and the rest of what there is to say of it, but for an inner query. lines:
    the text of its stages, of which this is the last.
    """
    return lines[0], tuple(lines[1:])


def _words(*stages: Stage) -> tuple[str, tuple[str, ...]]:
    return operator_words(stages[-1], [line.strip() for stage in stages for line in render_stage(stage)])
