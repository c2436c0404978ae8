"""All rewrites of a text that its rules allow, each bound again and weighed.

A rewrite that the language refuses is dropped, as is one that saves nothing. Cost: O(sources * binding).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.language.dialect import parse_tree
from engine.language.places import Text
from engine.language.query import Query, Scan
from engine.model.approximation import Expected
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.tolerance import Tolerance
from engine.overload.precision.of_query import RowsOf, shape_of_query, shares_of
from engine.overload.proposals.join_windows import join_windows
from engine.overload.proposals.proposal import Proposal, Rewrite
from engine.overload.proposals.sampling import sample_introduced, sample_lowered, sample_pushed_down
from engine.overload.proposals.sources_in_text import Catalogue, SourceInText, sources_of
from engine.overload.proposals.text import Tokens
from engine.overload.proposals.window_reduction import window_reduction
from tureen.errors import TureenError

Rule = Callable[[str, Tokens, SourceInText], Iterator[Rewrite]]

RULES: tuple[Rule, ...] = (
    window_reduction,
    join_windows,
    sample_pushed_down,
    sample_lowered,
    sample_introduced,
)

PROPOSALS_MAX = 32


def rewrites(sql: str, catalogue: Catalogue, limits: Limits) -> Iterator[Rewrite]:
    """What the rules give, at most :data:`PROPOSALS_MAX`, whether or not it binds."""
    tokens = Tokens(sql)
    tree = parse_tree(Text(sql), limits)
    count = 0
    for source in sources_of(tree, catalogue):
        for rule in RULES:
            for found in rule(sql, tokens, source):
                if count == PROPOSALS_MAX:
                    return
                count += 1
                yield found


def propose(
    query: Query,
    sql: str,
    catalogue: Catalogue,
    limits: Limits,
    bind: Callable[[str], Query],
    rows_of: RowsOf,
    row_bytes: Mapping[SourceName, float],
    tolerance: Tolerance,
) -> tuple[Proposal, ...]:
    """Proposes cheaper texts for a query. sql: the text it was bound from; bind: binds another text;
    row_bytes: bytes of a row of each source.
    """
    found = []
    for rewrite in rewrites(sql, catalogue, limits):
        try:
            other = bind(rewrite.sql)
        except TureenError:
            continue
        if other.columns != query.columns or other.sources != query.sources:
            continue
        proposal = _weighed(query, other, rewrite, rows_of, row_bytes, tolerance)
        if proposal is not None:
            found.append(proposal)
    return tuple(found)


def _weighed(
    query: Query,
    other: Query,
    rewrite: Rewrite,
    rows_of: RowsOf,
    row_bytes: Mapping[SourceName, float],
    tolerance: Tolerance,
) -> Proposal | None:
    changed = _changed(query, other)
    if changed is None:
        return None
    before, after = changed
    shares = shares_of(query, other)
    expected = None
    if shares is not None:
        expected = shape_of_query(query, rows_of, scaled=False).expected(shares)[-1].expected
    rows, rows_after = _scanned(query, before, rows_of), _scanned(other, after, rows_of)
    freed = 0.0
    if before.window != after.window:
        freed = max(0.0, _stored(query, before, rows_of) - _stored(other, after, rows_of))
    return Proposal(
        rewrite.rule,
        rewrite.source,
        rewrite.change,
        rewrite.sql,
        rows,
        rows_after,
        freed * row_bytes.get(before.source, 0.0),
        float(rows_of(query)[-1]),
        float(rows_of(other)[-1]),
        expected,
        expected is not None and _covers(tolerance, expected),
    )


def _changed(query: Query, other: Query) -> tuple[Scan, Scan] | None:
    """The scan that differs, in both; None where none does, or the texts have another form."""
    pairs = list(zip(query.scans(), other.scans(), strict=False))
    if len(pairs) != len(list(query.scans())) or len(pairs) != len(list(other.scans())):
        return None
    return next(((one, two) for one, two in pairs if one != two), None)


def _scanned(query: Query, scan: Scan, rows_of: RowsOf) -> float:
    """Rows of one of its scans."""
    for each in _queries(query):
        if each.scan is scan:
            return float(rows_of(each)[0])
    return 0.0


def _stored(query: Query, scan: Scan, rows_of: RowsOf) -> float:
    """Rows that its window holds, whatever the query makes of them."""
    return float(rows_of(replace(query, scan=replace(scan, predicate=None), stages=()))[0])


def _queries(query: Query) -> Sequence[Query]:
    """The query, and those inside it."""
    found = [query]
    for stage in query.stages:
        inner = getattr(stage, "inner", None)
        if isinstance(inner, Query):
            found += _queries(inner)
    return found


def _covers(tolerance: Tolerance, expected: Expected) -> bool:
    """Whether what is expected lies within what a query allows; what it does not name it does not allow."""
    if expected.error is not None:
        return expected.error <= (tolerance.max_error or 0.0)
    return (expected.fp or 0.0) <= (tolerance.max_fp or 0.0) and (expected.fn or 0.0) <= (
        tolerance.max_fn or 0.0
    )
