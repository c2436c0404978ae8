"""The rules by which a bound query is rewritten. What an operator does by one is in its ``rewrites.py``."""

from __future__ import annotations

from engine.algebra.join.stage import Join
from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.dataflow.rewrites.rule import Rule, Sources, Stages
from engine.language.query import Query


@asked_of("rewrites")
def merge_unions(stage: Stage, query: Query, place: int, sources: Sources) -> Stages | None:
    """A UNION ALL (B UNION ALL C)  ->  A UNION ALL B UNION ALL C: one operator for all inputs.

    The bag is the same. The order may not be: rows of streams are merged in the order of time, those of other
    relations stand one behind the other, and of three inputs some may be of each kind.
    """
    return None


@asked_of("rewrites")
def drop_distinct(stage: Stage, query: Query, place: int, sources: Sources) -> Stages | None:
    """DISTINCT over what is distinct  ->  without it; of two with only UNION ALL between them the upper.

        DISTINCT(a, n of A GROUP BY a)               ->  a, n of A GROUP BY a
        DISTINCT(DISTINCT(A) UNION ALL DISTINCT(B))  ->  DISTINCT(A UNION ALL B)

    The second keeps the first of equal rows of either input, which is the first of all of them; with its rows
    the order is the same.
    """
    return None


@asked_of("rewrites")
def selection_down(stage: Stage, query: Query, place: int, sources: Sources) -> Stages | None:
    """A selection over a set operation  ->  over both inputs; over IN, EXISTS and their negations  ->  below.

        select(A UNION ALL B)           ->  select(A) UNION ALL select(B)
        select(A EXCEPT ALL ON (k) B)   ->  select(A) EXCEPT ALL ON (k) select(B)      select reads k alone
        select(A WHERE k NOT IN (B))    ->  select(A) WHERE k NOT IN (B)

    Below a bag difference a selection on other columns would change which rows are counted: with two left
    rows of a value, one of which satisfies it, and one right row, the difference is the younger, and it may
    be either. It goes into both inputs there, since it takes all rows of a value or none. A union evaluates
    it on the same rows as before, so it may err; of the others it may not.
    """
    return None


@asked_of("rewrites")
def distinct_below_join(stage: Stage, query: Query, place: int, sources: Sources) -> Stages | None:
    """DISTINCT of a join  ->  a join of distinct rows, and DISTINCT above it only where it is still needed.

        DISTINCT(a, b of A join B on k)  ->  DISTINCT(a, b of DISTINCT(a, k of A) join DISTINCT(b, k of B))

    a and b also hold what the join's condition reads. The upper one goes where the columns that are given
    tell those that are not: all of (a, k) and (b, k) then, a column of the join's key by its equal on the
    other side.

    Order: pairs are in the order of their left rows, then of their right ones. The first pair of a value is,
    on both ways, one of the first left row of (a, k) and the first right row of (b, k).

    It crosses neither a bag difference, of whose equal rows some stay, nor an ASOF join or one with the
    versions of a table, where equal rows of different instants have different partners.
    """
    return None


@asked_of("rewrites")
def negation_up(stage: Stage, query: Query, place: int, sources: Sources) -> Stages | None:
    """A join of what a negation leaves  ->  the negation of the join: fewer operators get negative tuples.

        (A WHERE k NOT IN (B)) join C        ->  (A join C) WHERE k NOT IN (B)
        (A EXCEPT ALL ON (k) B) join C on k  ->  (A join C on k) EXCEPT ALL ON (k) B       C: each k once
        (A EXCEPT ALL ON (k) B) left join C  ->  (A left join C) EXCEPT ALL ON (k) B       C: one partner

    C has so many at most. NOT IN and NOT EXISTS look at one row, so they say of a pair what they say of its
    left row. A bag difference counts rows: of the pairs it counts as many as there were left rows where each
    has one pair (of a LEFT JOIN, of which each left row has one at most), or all left rows of a value have
    one and the same partner, or none. With more partners, or partners by other columns, the answers differ;
    the difference then stays below.

    No join with a table, or with its versions, goes above a negation by any rule: the other way is
    ``negation_down``, for streams.
    """
    return None


@asked_of("rewrites")
def over_join(stage: Stage, join: Join, query: Query, place: int, sources: Sources) -> Stage | None:
    """A negation as it means the same above the join over it; None: there is none. place: of the join."""
    return None


@asked_of("rewrites")
def negation_down(stage: Stage, query: Query, place: int, sources: Sources) -> Stages | None:
    """A negation that reads one side of a join  ->  below the join: fewer rows are joined.

        (A join C) WHERE A.k NOT IN (B)  ->  (A WHERE k NOT IN (B)) join C

    What ``negation_up`` does, the other way, where the negation leaves few rows. A join with a table or with
    its versions stays below: what a negative tuple takes away was joined with a row that may be gone. A bag
    difference over a join stays there, since it counts pairs.
    """
    return None


RULES = (
    Rule("merge unions", merge_unions, keeps_order=False),
    Rule("drop DISTINCT", drop_distinct),
    Rule("selection below", selection_down),
    Rule("DISTINCT below join", distinct_below_join),
    Rule("negation above join", negation_up),
    Rule("negation below join", negation_down),
)
