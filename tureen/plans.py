"""Plans as people read them: from ``GET /queries/{handle}/plan`` or EXPLAIN to lines and a table.

    query wbpy4mk74giav5jp6e2f7uuvyk over trades, maintenance lazy
    computing time a second: lazy 120 µs, none 4 ms, eager 900 µs
    changes: rows added and removed, identified by all their values
    a relation by default: rows of the window 'NOW - 1 hour to NOW' of trades go or change

    operator      detail                  est. rows  est. ms
    project       symbol, price                 120     0.03
    └ scan        trades [RANGE 1 HOUR]         120     0.02

The operator that gives the answer comes first, the scan last. ``verbose``: with what is for developers of the
engine: ``edge``, the update pattern of the rows that leave an operator, and how predicates are shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tureen.catching_up import catching_up_of

COLUMNS = ("operator", "detail", "est. rows", "est. ms")
VERBOSE_COLUMNS = ("operator", "detail", "edge", "est. rows", "est. ms")
ANALYZED_COLUMNS = ("rows", "ms")
PRECISION_COLUMNS = ("wrong", "missing", "error")
"""The expected precision of what leaves an operator, in percent: wrong rows by rows given, missing ones by
rows due, and half the 95 % interval of an aggregate relative to its value. Shown only where an operator is
not exact.
"""


def is_analyzed(plan: Mapping[str, Any]) -> bool:
    """Whether the plan has measured rows and times."""
    return any(step.get("actual_rows") is not None for step in plan["steps"])


def is_approximate(plan: Mapping[str, Any]) -> bool:
    """Whether some operator is expected to give less than it should."""
    return any(step.get("expected") is not None for step in plan["steps"])


def columns(plan: Mapping[str, Any], *, verbose: bool = False) -> tuple[str, ...]:
    """The names of :func:`rows`."""
    found: tuple[str, ...] = VERBOSE_COLUMNS if verbose else COLUMNS
    found += ANALYZED_COLUMNS if is_analyzed(plan) else ()
    return found + (PRECISION_COLUMNS if is_approximate(plan) else ())


def rows(plan: Mapping[str, Any], *, verbose: bool = False) -> list[tuple[Any, ...]]:
    """One row for each operator, from the answer down to the scan; times in ms.

    A query that emits its changes has one more row before them.
    """
    analyzed, approximate = is_analyzed(plan), is_approximate(plan)
    found: list[tuple[Any, ...]] = []
    if plan["emit"] is not None:
        last = plan["steps"][-1]
        edge = (last["pattern"],) if verbose else ()
        word = "emit" if plan["emit"].get("insert") is None else "insert"
        emitted = f"{word} {plan['operator']}", "; ".join(changes(plan)), *edge
        none = (None,) * ((2 if analyzed else 0) + (3 if approximate else 0))
        found.append((*emitted, round(last["estimated_rows"]), None, *none))
    for depth, step in enumerate(reversed(plan["steps"]), len(found)):
        row: tuple[Any, ...] = (
            ("  " * (depth - 1) + "└ " if depth else "") + step["operator"],
            "; ".join(line.strip() for line in step["details"]),
            *((step["pattern"],) if verbose else ()),
            round(step["estimated_rows"]),
            _ms(step["estimated_ns"]),
        )
        if analyzed:
            row += (step["actual_rows"], _ms(step["actual_ns"]))
        if approximate:
            row += tuple(_percent((step["expected"] or {}).get(name)) for name in ("fp", "fn", "error"))
        found.append(row)
    return found


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.3g} %"


PROPOSAL_COLUMNS = (
    "#",
    "rule",
    "source",
    "change",
    "rows",
    "saves",
    "answer rows",
    *PRECISION_COLUMNS,
    "allowed",
)
PROPOSAL_TEXTS = ("rule", "source", "change", "allowed")


def proposal_rows(found: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """One row for each proposal, for :data:`PROPOSAL_COLUMNS`: rows of the source and of the answer as
    estimated with it, bytes that it saves at most, and precision against the present text.
    """
    return [
        (
            number,
            one["rule"],
            one["source"],
            one["change"],
            round(one["rows_after"]),
            round(one["bytes_saved"]),
            round(one["answer_rows_after"]),
            *(_percent((one["expected"] or {}).get(name)) for name in ("fp", "fn", "error")),
            "yes" if one["within_tolerance"] else "ask",
        )
        for number, one in enumerate(found, 1)
    ]


def headline(plan: Mapping[str, Any]) -> list[str]:
    """What the plan is of, and how its answer is maintained and why."""
    subject = f"query {plan['query_id']}" if plan["query_id"] else "a query that is not registered,"
    state = ", paused" if plan["paused"] else ""
    lines = [f"{subject} over {', '.join(plan['sources'])}, maintenance {plan['maintenance']}{state}"]
    lines += [f"{one}: figures are of what it has" for one in catching_up_of(plan.get("catching_up"))]
    if plan["uses"]:
        lines.append(f"through {'views' if len(plan['uses']) > 1 else 'the view'} {', '.join(plan['uses'])}")
    if plan["reason"]:
        lines.append(plan["reason"])
    allowed = [f"{name} {value:g}" for name, value in plan["tolerance"].items()]
    if plan["weight"] != 1:
        allowed.append(f"weight {plan['weight']:g}")
    if allowed:
        lines.append(f"where resources are short: {', '.join(allowed)}")
    if plan["waits_for"]:
        lines.append(_waiting(plan))
    return lines + changes(plan)


def _waiting(plan: Mapping[str, Any]) -> str:
    """Why there is no answer yet: streams of which no row was read where the query is, or would be."""
    names = " and ".join(plan["waits_for"])
    now = "NOW is the earliest of the streams' times"
    if plan["query_id"]:
        return f"no answer yet: no row of {names} was read so far, and {now}"
    return (
        f"no figures yet: no row of {names} was read where the query would be; a shard may read a topic only "
        f"once a query needs it, and {now}"
    )


_LEAVING = {
    "changes": "rows added and removed",
    "istream": "rows added",
    "dstream": "rows removed",
    "rstream": "all rows, whenever one is added or removed",
}


def changes(plan: Mapping[str, Any]) -> list[str]:
    """Which changes of the answer are emitted, what identifies its rows, and where they are written."""
    key = plan["key"]
    if key is None:
        apart = "identified by all their values"
    else:
        apart = f"identified by {', '.join(key)}" if key else "at most one row"
    lines = [f"changes: {_LEAVING[plan['operator']]}, {apart}", plan["operator_rule"]]
    emit = plan["emit"]
    insert = None if emit is None else emit.get("insert")
    if insert is not None:
        first = ", after a snapshot" if emit["snapshot"] else ""
        lines.append(f"inserted into {insert['stream']} as records of {insert['topic']}{first}")
    elif emit is not None:
        topic = "the topics that queries share" if emit["into"] is None else f"the topic {emit['into']}"
        told = f"as {emit['format']} in {emit['encoding']}"
        lines.append(f"written to {topic} {told}" + (", after a snapshot" if emit["snapshot"] else ""))
    return lines


def preference(plan: Mapping[str, Any]) -> list[str]:
    """What rows a query with a preference wants first, where they come from, and what is left; of others
    nothing.
    """
    found = plan.get("preference")
    if found is None:
        return []
    faded = f", fade factor {found['fade']:g}" if found["fade"] != 1 else ""
    window = "" if found["window_ms"] is None else f", window {_span(found['window_ms'])}"
    lines = [f"preference {found['order']} by {found['form']}{faded}{window}"]
    summaries = {one["name"]: one for one in found["summaries"]}
    lines += [
        f"{one['source']}: {one['expression']}{_summary(summaries.get(one['summary']))}"
        for one in found["priorities"]
    ]
    if not found["counts"]:
        return lines + list(found["notes"])
    counts = {name: f"{round(value):,}" for name, value in found["counts"].items()}
    entries = ", ".join(f"{counts[key]} {name}" for key, name in _ENTRIES.items())
    rows = ", ".join(f"{counts[key]} {name}" for key, name in _VISITS.items())
    members = "1 query" if found["members"] == 1 else f"{found['members']:,} queries"
    own = f"{found['found']:,} rows of this query, about {found['estimated_left']:,.0f} left"
    lines += [f"{found['group']}, of {members}: {entries}", rows, f"{own}: {found['precision']:.0%} of all"]
    if visited := found.get("visited"):
        parts = ", ".join(
            f"{name} {'NULL' if part is None else f'{part:,.6g}'}" for name, part in visited.items()
        )
        lines.append(f"completed by estimates; the visited rows alone give {parts}")
    if unscaled := found.get("unscaled"):
        lines.append(f"of the visited rows alone: {', '.join(unscaled)}")
    return lines + list(found["notes"])


_ENTRIES = {
    "entries": "entries",
    "entries_left": "left",
    "cut": "cut",
    "lapsed": "lapsed",
    "pruned": "pruned",
}
_VISITS = {"visited": "rows visited", "short": "left to visit", "hits": "found", "spent": "units spent"}
"""Counts of a promising set, as lines call them."""


def _summary(one: Mapping[str, Any] | None) -> str:
    """What is known of a summary; None: it is absent."""
    if one is None:
        return ", its summary was dropped"
    zones = "/".join(map(str, one["zones"]))
    return (
        f", {one['kind']} of {one['attribute']}: zones {zones}, {one['rows']:,} rows, "
        f"reach {_span(one['reach_ms'])}, error {one['error_rows']:,.3g} rows"
    )


def _span(ms: int) -> str:
    """A span of time in the longest unit that it has a whole number of."""
    for unit, of in (("days", 86_400_000), ("hours", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms % of == 0:
            return f"{ms // of:,} {unit}"
    return f"{ms:,} ms"


def predicates(plan: Mapping[str, Any]) -> list[str]:
    """Each predicate that rows are matched with as they come, and whom it is shared with."""
    lines = []
    for one in plan["predicates"]:
        told = {name.replace("_", " "): _plain(value) for name, value in one["facts"].items()}
        facts = ", ".join(f"{name} {value}" for name, value in told.items() if value)
        lines.append(f"{one['source']}: {one['predicate']}: {facts or 'no matches are kept'}")
    return lines


def views(plan: Mapping[str, Any]) -> list[str]:
    """Each window as a part of its source's one store, and how many queries share that."""
    return [
        f"{one['source']}: {one['end'] - one['begin']:,} rows, a view of the store, which holds "
        f"{one['store_end'] - one['store_begin']:,} for {one['queries']:,} queries"
        for one in plan["views"]
    ]


GRAPH_COLUMNS = ("operator", "detail", "edge", "queries", "rows", "bytes")


def graph_headline(plan: Mapping[str, Any]) -> str:
    """What the operators of :func:`graph` are for."""
    if plan.get("preference") is not None:
        state = "followed" if plan["followed"] else "not followed"
        return f"{state}: its changes are told as rows are found, from no operators of their own"
    followed, come = ("followed", "come") if plan["followed"] else ("not followed", "would come")
    line = f"{followed}: its changes {come} from these operators, which followed queries share"
    if plan["as_from_now"]:
        line += f"; [UNBOUNDED] of {plan['sources'][0]} is as good as [NOW] for them, no row is kept"
    return line


def graph(plan: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The operators that changes come from, for :data:`GRAPH_COLUMNS`: the one that gives the answer first,
    those that an operator reads below it. None of a query with a preference.
    """
    if plan.get("preference") is not None:
        return []
    found: list[tuple[Any, ...]] = []
    _put_tree(plan["graph"], "", "", found)
    return found


def _put_tree(tree: Mapping[str, Any], first: str, others: str, found: list[tuple[Any, ...]]) -> None:
    """first, others: what stands before the operator, and before those below it."""
    reason, state = tree["reason"], tree["state"]
    expected = tree.get("expected") or {}
    known = ", ".join(f"{name} {value:.3g}" for name, value in expected.items() if value is not None)
    told = [f"because of {reason}"] if reason else []
    told += [f"expected {known}"] if known else []
    detail = "; ".join([*tree["details"], *told])
    counts = state["queries"], state["rows"], state["bytes"]
    found.append((first + tree["operator"], detail, tree["pattern"], *counts))
    for place, below in enumerate(tree["inputs"], 1):
        last = place == len(tree["inputs"])
        _put_tree(below, others + ("└ " if last else "├ "), others + ("  " if last else "│ "), found)


def strategy(plan: Mapping[str, Any]) -> list[str]:
    """How its operators keep rows until they leave, and why so."""
    found = plan.get("strategy")
    if found is None:
        return []
    name = found["strategy"] if found["structure"] is None else f"{found['strategy']}, {found['structure']}"
    lines = [f"strategy {name}: {found['reason']}"]
    if found["rules"]:
        lines.append(f"rewritten: {', '.join(found['rules'])}")
    if found["premature"]:
        lines.append(f"up to {found['premature']:.0%} of the rows of an edge leave before their time")
    return lines


WAY_COLUMNS = ("plan", "listed/s", "entries/s", "ms/s", "state bytes")


def ways(plan: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What the plan costs a second, and what others that mean the same would, the cheapest first; for
    :data:`WAY_COLUMNS`. Listed: entries of linked lists that would be scanned; entries: those that are really
    looked at, put in or taken out. Nothing, where nothing was measured.
    """
    found = plan.get("strategy")
    if found is None or found["cost"] is None:
        return []
    return [
        (
            one["name"],
            _figure(one["listed"]),
            _figure(one["entries"]),
            _figure(one["ns"] / 1e6),
            _figure(one["state_bytes"]),
        )
        for one in (found["cost"], *found["others"])
    ]


COST_COLUMNS = ("operator", "keeps", "rows/s", "est. rows", "early", "listed/s", "entries/s", "ms/s")
COUNTED_COLUMNS = ("rows", "looked at")


def costs(plan: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What each operator is estimated to keep and to cost a second, for :data:`COST_COLUMNS`, and of ANALYZE
    for :data:`COUNTED_COLUMNS` too: the rows that it keeps and how many it looked at since it came. Nothing,
    where nothing was measured.
    """
    found: list[tuple[Any, ...]] = []
    if plan["graph"].get("cost") is not None:
        _put_costs(plan["graph"], 0, is_analyzed(plan), found)
    return found


def _put_costs(tree: Mapping[str, Any], depth: int, analyzed: bool, found: list[tuple[Any, ...]]) -> None:
    cost, state = tree["cost"], tree["state"]
    row: tuple[Any, ...] = (
        ("  " * (depth - 1) + "└ " if depth else "") + tree["operator"],
        "; ".join(map(_kept, cost["kept"])),
        _figure(cost["rows_per_s"]),
        _figure(cost["rows"]),
        f"{cost['premature']:.0%}",
        _figure(sum(term["listed"] for term in cost["terms"])),
        _figure(sum(term["entries"] for term in cost["terms"])),
        _figure(sum(term["ns"] for term in cost["terms"]) / 1e6),
    )
    found.append((*row, state["rows"], state["visited"]) if analyzed else row)
    for below in tree["inputs"]:
        _put_costs(below, depth + 1, analyzed, found)


def _kept(state: Mapping[str, Any]) -> str:
    partitions = "" if state["partitions"] is None else f"({state['partitions']})"
    return f"{state['of']} {state['structure']}{partitions}"


def _figure(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


MODULE_COLUMNS = ("module", "queries", "tickets", "visits", "rows", "killed", "errors", "ms")


def modules(plan: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What rows go through on their way to matches, one row for each module; for :data:`MODULE_COLUMNS`.

    "-" stands for tickets of a module that no policy chooses, and for rows killed by a join that let out more
    than went in.
    """
    return [
        (
            f"{place} {one['name']}",
            one["queries"],
            "-" if one["tickets"] is None else round(one["tickets"], 3),
            one["visits"],
            one["given"],
            "-" if one["killed"] < 0 else one["killed"],
            one["errors"],
            _ms(one["cost"]),
        )
        for place, held in plan["modules"].items()
        for one in held
    ]


def _ms(ns: float | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 4)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_plain(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(_plain, value))
    return str(value)
