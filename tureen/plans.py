"""Plans as people read them: from ``GET /queries/{handle}/plan`` or EXPLAIN to lines and a table.

    query wbpy4mk74giav5jp6e2f7uuvyk over trades, maintenance lazy
    share of a core: lazy 0.00012, none 0.004, eager 0.0009
    changes: rows added and removed, identified by all their values

    operator      detail                  est. rows  est. ms
    project       symbol, price                 120     0.03
    └ scan        trades [RANGE 1 HOUR]         120     0.02

The operator that gives the answer comes first, the scan last. ``verbose``: with what is for developers of the
engine: ``edge``, the update pattern of the rows that leave an operator, and how predicates are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = ("operator", "detail", "est. rows", "est. ms")
VERBOSE_COLUMNS = ("operator", "detail", "edge", "est. rows", "est. ms")
ANALYZED_COLUMNS = ("rows", "ms")


def is_analyzed(plan: Mapping[str, Any]) -> bool:
    """Whether the plan has measured rows and times."""
    return any(step.get("actual_rows") is not None for step in plan["steps"])


def columns(plan: Mapping[str, Any], *, verbose: bool = False) -> tuple[str, ...]:
    """The names of :func:`rows`."""
    return (VERBOSE_COLUMNS if verbose else COLUMNS) + (ANALYZED_COLUMNS if is_analyzed(plan) else ())


def rows(plan: Mapping[str, Any], *, verbose: bool = False) -> list[tuple[Any, ...]]:
    """One row for each operator, from the answer down to the scan; times in ms.

    A query that emits its changes has one more row before them.
    """
    analyzed = is_analyzed(plan)
    found: list[tuple[Any, ...]] = []
    if plan["emit"] is not None:
        last = plan["steps"][-1]
        edge = (last["pattern"],) if verbose else ()
        emitted = f"emit {plan['operator']}", "; ".join(changes(plan)), *edge
        found.append((*emitted, round(last["estimated_rows"]), None, *((None, None) if analyzed else ())))
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
        found.append(row)
    return found


def headline(plan: Mapping[str, Any]) -> list[str]:
    """What the plan is of, and how its answer is maintained and why."""
    subject = f"query {plan['query_id']}" if plan["query_id"] else "a query that is not registered,"
    state = ", paused" if plan["paused"] else ""
    lines = [f"{subject} over {', '.join(plan['sources'])}, maintenance {plan['maintenance']}{state}"]
    if plan["uses"]:
        lines.append(f"through {'views' if len(plan['uses']) > 1 else 'the view'} {', '.join(plan['uses'])}")
    if plan["reason"]:
        lines.append(plan["reason"])
    if plan["waits_for"]:
        names = ", ".join(plan["waits_for"])
        lines.append(
            f"no answer yet: {names} has no row so far, and NOW is the earliest of the streams' times"
        )
    return lines + changes(plan)


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
    lines = [f"changes: {_LEAVING[plan['operator']]}, {apart}"]
    emit = plan["emit"]
    if emit is not None:
        topic = "the topics that queries share" if emit["into"] is None else f"the topic {emit['into']}"
        told = f"as {emit['format']} in {emit['encoding']}"
        lines.append(f"written to {topic} {told}" + (", after a snapshot" if emit["snapshot"] else ""))
    return lines


def predicates(plan: Mapping[str, Any]) -> list[str]:
    """Each predicate that rows are matched with as they come, and whom it is shared with."""
    lines = []
    for one in plan["predicates"]:
        told = {name.replace("_", " "): _plain(value) for name, value in one["facts"].items()}
        facts = ", ".join(f"{name} {value}" for name, value in told.items() if value)
        lines.append(f"{one['source']}: {one['predicate']}: {facts or 'no matches are kept'}")
    return lines


GRAPH_COLUMNS = ("operator", "detail", "edge", "queries", "rows", "bytes")


def graph_headline(plan: Mapping[str, Any]) -> str:
    """What the operators of :func:`graph` are for."""
    if plan["followed"]:
        return "followed: its changes come from these operators, which followed queries share"
    return "not followed: its changes would come from these operators, which followed queries share"


def graph(plan: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The operators that changes come from, for :data:`GRAPH_COLUMNS`: the one that gives the answer first,
    those that an operator reads below it.
    """
    found: list[tuple[Any, ...]] = []
    _put_tree(plan["graph"], "", "", found)
    return found


def _put_tree(tree: Mapping[str, Any], first: str, others: str, found: list[tuple[Any, ...]]) -> None:
    """first, others: what stands before the operator, and before those below it."""
    reason, state = tree["reason"], tree["state"]
    detail = "; ".join([*tree["details"], *([f"because of {reason}"] if reason else [])])
    counts = state["queries"], state["rows"], state["bytes"]
    found.append((first + tree["operator"], detail, tree["pattern"], *counts))
    for place, below in enumerate(tree["inputs"], 1):
        last = place == len(tree["inputs"])
        _put_tree(below, others + ("└ " if last else "├ "), others + ("  " if last else "│ "), found)


MODULE_COLUMNS = ("module", "queries", "tickets", "visits", "rows", "killed", "ms")


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
