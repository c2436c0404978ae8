"""SAMPLE introduced, lowered, or pushed down (STREAM, section 5.1.2).

A sample passes selections and projections, and goes to the many side of a join with a table by its key: each
row above is then one row below, so that it is kept with the same probability as all others. Never below
DISTINCT, GROUP BY or a general join: a sample of a join is no join of samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from engine.language.grammar import nodes
from engine.overload.proposals.proposal import Rewrite
from engine.overload.proposals.sources_in_text import SourceInText
from engine.overload.proposals.text import Edit, Tokens, edited

RATE = Decimal(10)
"""Percent, of a sample that is introduced."""

_WRITTEN = re.compile(
    r"SAMPLE\s*\(\s*([0-9.]+)\s*(?:DOWN\s+TO\s+([0-9.]+)\s*)?(?:,\s*([0-9]+)\s*)?\)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Clause:
    """SAMPLE as it stands in the text, in percent."""

    start: int
    end: int
    percent: Decimal
    down_to: Decimal | None
    seed: str


def sample_introduced(sql: str, tokens: Tokens, source: SourceInText) -> Iterator[Rewrite]:
    """On one source that has none."""
    if not _may_sample(source) or _sampled(source.item) or _any_outer(source):
        return
    end = tokens.end_of(source.item.args["this"].meta["start"])
    change = f"all rows to {RATE} %"
    yield Rewrite("sample introduced", source.name, change, edited(sql, [Edit(end, end, f" SAMPLE({RATE})")]))


def sample_lowered(sql: str, tokens: Tokens, source: SourceInText) -> Iterator[Rewrite]:
    """Half the rate that one source is sampled with, or what DOWN TO allows. What stands above a sample that
    the text has does not matter: its rate is lower there too.
    """
    clause = _clause(sql, tokens, source.item)
    if clause is None or source.above.grows_by_loss:
        return
    rate = clause.percent / 2 if clause.down_to is None else clause.down_to
    if not 0 < rate < clause.percent:
        return
    yield Rewrite(
        "sampling rate lowered",
        source.name,
        f"{clause.percent} % to {rate.normalize():f} %",
        edited(sql, [Edit(clause.start, clause.end, f"SAMPLE({rate.normalize():f}{clause.seed})")]),
    )


def sample_pushed_down(sql: str, tokens: Tokens, source: SourceInText) -> Iterator[Rewrite]:
    """From a subquery to its source, where each of its rows is one of the source's."""
    if source.outer is None or _sampled(source.item):
        return
    clause = _clause(sql, tokens, source.outer)
    if clause is None:
        return
    end = tokens.end_of(source.item.args["this"].meta["start"])
    yield Rewrite(
        "sample pushed down",
        source.name,
        "from the subquery to its source",
        edited(
            sql,
            [
                Edit(end, end, " " + sql[clause.start : clause.end]),
                Edit(_before(sql, clause.start), clause.end, ""),
            ],
        ),
    )


def _may_sample(source: SourceInText) -> bool:
    above = source.above
    return not (above.grows_by_loss or above.grouped or above.joined)


def _any_outer(source: SourceInText) -> bool:
    return source.outer is not None and _sampled(source.outer)


def _sampled(item: nodes.FromItem) -> bool:
    return item.args.get("sample") is not None


def _clause(sql: str, tokens: Tokens, item: nodes.FromItem) -> _Clause | None:
    if not _sampled(item):
        return None
    place = tokens.call(item.args["sample"].meta["start"], "SAMPLE")
    found = None if place is None else _WRITTEN.fullmatch(sql, *place)
    if place is None or found is None:
        return None
    percent, down_to, seed = found.groups()
    return _Clause(
        *place,
        Decimal(percent),
        None if down_to is None else Decimal(down_to),
        "" if seed is None else f", {seed}",
    )


def _before(sql: str, start: int) -> int:
    """Where the blanks before a clause begin."""
    return len(sql[:start].rstrip())
