"""The text of a plan: each operator a name of WITH, in SQL. What a plan means is what its text means.

    scan        WITH step_1 AS (SELECT * FROM flights [RANGE 1 HOUR] WHERE delay > 30),
    aggregate        step_2 AS (SELECT dest AS dest, COUNT(*) AS n FROM step_1 GROUP BY 1)
    output      SELECT * FROM step_2

So types, limits and refusals are those of texts; a refusal is told with the path to the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tureen.errors import PlanRefused, QueryError
from tureen.plan_files.check import Node, Plan, check, in_order, inputs_of
from tureen.plan_files.schema import NODES_MAX

Resolve = Callable[[str, str], tuple[Plan, str]]
"""The plan of a query, and the name in it, that a node ``shared`` stands for. Raises PlanRefused."""


@dataclass(frozen=True, slots=True)
class PlanText:
    """A text, and where in it the expressions of a plan stand: (begin, end, path)."""

    sql: str
    spans: tuple[tuple[int, int, str], ...]

    def refusal(self, error: QueryError) -> PlanRefused:
        """The refusal of the text as one of the plan."""
        path, line, column = "plan", None, None
        if error.line is not None and error.column is not None:
            lines = self.sql.split("\n")
            place = sum(len(each) + 1 for each in lines[: error.line - 1]) + error.column - 1
            for begin, end, of in self.spans:
                if begin <= place < end:
                    before = self.sql[begin:place].split("\n")
                    path, line, column = of, len(before), len(before[-1]) + 1
        return PlanRefused(path, error.message, hint=error.hint, line=line, column=column)


def text_of(plan: Any, resolve: Resolve | None = None) -> PlanText:
    """The text of a plan. resolve: finds operators of other plans; None: there are none.

    Raises PlanRefused. O(size).
    """
    plan = check(plan)
    if "sql" in plan:
        return PlanText(plan["sql"], ((0, len(plan["sql"]), "sql"),))
    if any(node["op"] == "shared" for node in plan["nodes"].values()):
        plan = check(with_shared(plan, resolve))
    return _Writer(plan).text()


def with_shared(plan: Plan, resolve: Resolve | None) -> dict[str, Any]:
    """The plan with the operators of other plans that it names, in their places. Raises PlanRefused."""
    nodes: dict[str, Any] = {}
    for name, node in plan["nodes"].items():
        if node["op"] != "shared":
            nodes[name] = node
            continue
        path = f"nodes.{name}"
        if resolve is None:
            raise PlanRefused(path, "operators of other queries are named over HTTP alone")
        other, wanted = resolve(node["query"], node["node"])
        if wanted not in other.get("nodes", {}):
            known = ", ".join(other.get("nodes", {})) or "none with names"
            raise PlanRefused(f"{path}.node", f"the query has no operator {wanted!r}", hint=f"it has {known}")
        taken = {wanted: name}
        waiting = [wanted]
        while waiting:
            theirs = waiting.pop()
            found = dict(other["nodes"][theirs])
            for field, below in inputs_of(found):
                if below not in taken:
                    taken[below] = f"{name}.{below}"
                    waiting.append(below)
                found[field] = taken[below]
            nodes[taken[theirs]] = found
        if len(nodes) > NODES_MAX:
            raise PlanRefused(path, f"with it there are more than {NODES_MAX} operators")
    return {**plan, "nodes": nodes}


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


class _Writer:
    """Writes one text; ``put`` notes where an expression stands."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pieces: list[str] = []
        self._length = 0
        self._spans: list[tuple[int, int, str]] = []
        nodes: Mapping[str, Node] = plan["nodes"]
        sources = {str(node.get("source")) for node in nodes.values()}
        prefix = "step"
        while any(source.startswith(prefix) for source in sources):
            prefix += "_"
        self._names = {name: f"{prefix}_{place}" for place, name in enumerate(in_order(plan), 1)}

    def text(self) -> PlanText:
        plan = self._plan
        emit = plan.get("emit", {})
        if "insert" in emit:
            self._insert(emit)
        for place, name in enumerate(self._names):
            self._say("WITH\n" if place == 0 else ",\n")
            self._say(f"{self._names[name]} AS (")
            self._node(plan["nodes"][name], f"nodes.{name}")
            self._say(")")
        columns = f"{plan['stream'].upper()}(*)" if "stream" in plan else "*"
        self._say(f"\nSELECT {columns} FROM {self._names[plan['output']]}")
        if "with" in plan:
            self._allowed(plan["with"])
        if "emit" in plan:
            self._emit(plan["emit"])
        return PlanText("".join(self._pieces), tuple(self._spans))

    def _say(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

    def _put(self, text: str, path: str) -> None:
        self._spans.append((self._length, self._length + len(text), path))
        self._say(text)

    def _expression(self, text: str, path: str) -> None:
        """In brackets, which it cannot end."""
        self._say("(")
        self._put(text, path)
        self._say(")")

    def _list(self, texts: Any, path: str) -> None:
        for place, text in enumerate(texts):
            if place:
                self._say(", ")
            self._put(text, f"{path}[{place}]")

    def _columns(self, columns: Mapping[str, str], path: str) -> None:
        for place, (name, text) in enumerate(columns.items()):
            if place:
                self._say(", ")
            self._expression(text, f"{path}.{name}")
            self._say(f" AS {quoted(name)}")

    def _node(self, node: Node, path: str) -> None:
        below = {field: self._names[name] for field, name in inputs_of(node)}
        match node["op"]:
            case "scan":
                self._scan(node, path)
            case "values":
                self._values(node, path)
            case "unnest":
                self._unnest(node, below["input"], path)
            case "filter":
                self._say(f"SELECT * FROM {below['input']} WHERE ")
                self._expression(node["where"], f"{path}.where")
            case "project":
                self._say("SELECT ")
                self._columns(node["columns"], f"{path}.columns")
                self._say(f" FROM {below['input']}")
            case "aggregate":
                self._aggregate(node, below["input"], path)
            case "distinct":
                self._say(f"SELECT DISTINCT * FROM {below['input']}")
            case "sort":
                self._say(f"SELECT * FROM {below['input']} ORDER BY ")
                self._list(node["by"], f"{path}.by")
            case "limit":
                self._say(f"SELECT * FROM {below['input']}")
                for field, word in (("count", "LIMIT"), ("offset", "OFFSET")):
                    if field in node:
                        self._say(f" {word} ")
                        self._put(str(node[field]), f"{path}.{field}")
            case "with_ties":
                self._say(f"SELECT * FROM {below['input']} ORDER BY ")
                self._list(node["by"], f"{path}.by")
                if "offset" in node:
                    self._say(" OFFSET ")
                    self._put(str(node["offset"]), f"{path}.offset")
                self._say(" FETCH FIRST ")
                self._put(str(node["count"]), f"{path}.count")
                self._say(" ROWS WITH TIES")
            case "row_number":
                self._row_number(node, below["input"], path)
            case "window_functions":
                self._window_functions(node, below["input"], path)
            case "join":
                self._join(node, below, path)
            case "semi_join":
                self._semi_join(node, below, path)
            case "set_operation":
                word = f"{node['kind'].upper()}{' ALL' if node.get('all') else ''}"
                self._say(f"SELECT * FROM {below['left']} {word} ")
                if "on" in node:
                    self._say("ON (")
                    self._list([quoted(name) for name in node["on"]], f"{path}.on")
                    self._say(") ")
                self._say(f"SELECT * FROM {below['right']}")
            case "stream":
                self._say(f"SELECT * FROM {node['operator'].upper()} (SELECT * FROM {below['input']})")
                self._clauses(node, path)
            case "sql":
                self._put(node["text"], f"{path}.text")

    def _values(self, node: Node, path: str) -> None:
        self._say("SELECT * FROM (VALUES ")
        self._put(node["rows"], f"{path}.rows")
        self._say(") AS v (")
        self._list([quoted(name) for name in node["columns"]], f"{path}.columns")
        self._say(")")

    def _unnest(self, node: Node, below: str, path: str) -> None:
        kind = "LEFT" if node.get("outer") else "CROSS"
        self._say(f"SELECT * FROM {below} l {kind} JOIN UNNEST(")
        self._list(node["arrays"], f"{path}.arrays")
        self._say(") WITH ORDINALITY AS r (" if "ordinality" in node else ") AS r (")
        self._list([quoted(name) for name in node["as"]], f"{path}.as")
        if "ordinality" in node:
            self._say(", ")
            self._put(quoted(node["ordinality"]), f"{path}.ordinality")
        self._say(") ON TRUE" if node.get("outer") else ")")

    def _scan(self, node: Node, path: str) -> None:
        self._say("SELECT * FROM ")
        function = node.get("function")
        if function is not None:
            self._say(f"{function['name'].upper()}(")
        self._put(quoted(node["source"]), f"{path}.source")
        if function is not None:
            if "partition" in function:
                self._say(" PARTITION BY ")
                self._list(function["partition"], f"{path}.function.partition")
            for argument in ("slide", "size", "gap", "offset"):
                if argument in function:
                    self._say(", ")
                    self._put(function[argument], f"{path}.function.{argument}")
            self._say(")")
        self._clauses(node, path)
        if "where" in node:
            self._say(" WHERE ")
            self._expression(node["where"], f"{path}.where")
        if "begin" in node:
            self._say(" BEGIN ")
            self._put(node["begin"], f"{path}.begin")
            self._say(" END ")
            self._put(node["end"], f"{path}.end")

    def _clauses(self, node: Node, path: str) -> None:
        """What stands behind a source or a subquery."""
        if "window" in node:
            self._say(" [")
            self._put(node["window"], f"{path}.window")
            self._say("]")
        if "sample" in node:
            self._say(" SAMPLE(")
            self._put(node["sample"], f"{path}.sample")
            self._say(")")

    def _aggregate(self, node: Node, below: str, path: str) -> None:
        keys, calls = node.get("keys", {}), node.get("calls", {})
        self._say("SELECT ")
        self._columns(keys, f"{path}.keys")
        if keys and calls:
            self._say(", ")
        self._columns(calls, f"{path}.calls")
        self._say(f" FROM {below}")
        if keys:
            self._say(f" GROUP BY {', '.join(str(place) for place in range(1, len(keys) + 1))}")

    def _row_number(self, node: Node, below: str, path: str) -> None:
        if "first" in node:
            self._say("SELECT * FROM (")
        self._say("SELECT *, ROW_NUMBER() OVER (")
        self._partitions(node, path)
        self._say(f") AS {quoted(node['as'])} FROM {below}")
        if "first" in node:
            self._say(f") WHERE {quoted(node['as'])} <= ")
            self._put(str(node["first"]), f"{path}.first")

    def _window_functions(self, node: Node, below: str, path: str) -> None:
        frames = node.get("frames", {})
        unknown = next((name for name in frames if name not in node["calls"]), None)
        if unknown is not None:
            raise PlanRefused(f"{path}.frames", f"there is no call {unknown}")
        self._say("SELECT *")
        for name, call in node["calls"].items():
            self._say(", ")
            self._put(call, f"{path}.calls.{name}")
            self._say(" OVER (")
            self._partitions(node, path)
            if name in frames:
                self._say(" ")
                self._put(frames[name], f"{path}.frames.{name}")
            self._say(f") AS {quoted(name)}")
        self._say(f" FROM {below}")

    def _partitions(self, node: Node, path: str) -> None:
        """PARTITION BY and ORDER BY, as far as there are any."""
        if "partition" in node:
            self._say("PARTITION BY ")
            self._list(node["partition"], f"{path}.partition")
        if "order" in node:
            self._say(" ORDER BY " if "partition" in node else "ORDER BY ")
            self._list(node["order"], f"{path}.order")

    def _join(self, node: Node, below: Mapping[str, str], path: str) -> None:
        words = node.get("kind", "inner").upper()
        self._say(f"SELECT * FROM {below['left']} l {words} JOIN {below['right']} r")
        if "on" in node:
            self._say(" ON ")
            self._expression(node["on"], f"{path}.on")

    def _semi_join(self, node: Node, below: Mapping[str, str], path: str) -> None:
        word = "NOT " if node.get("negated") else ""
        keys = node.get("keys", [])
        if node.get("null_aware") and len(keys) != 1:
            raise PlanRefused(f"{path}.keys", "null_aware is said of one pair of keys")
        if keys and (node.get("null_aware") or not node.get("negated")):
            self._say(f"SELECT * FROM {below['input']} l WHERE (")
            for place, (outer, _) in enumerate(keys):
                if place:
                    self._say(", ")
                self._put(outer, f"{path}.keys[{place}][0]")
            self._say(f") {word}IN (SELECT ")
            for place, (_, inner) in enumerate(keys):
                if place:
                    self._say(", ")
                self._put(quoted(inner), f"{path}.keys[{place}][1]")
            self._say(f" FROM {below['inner']})")
            return
        self._say(f"SELECT * FROM {below['input']} l WHERE {word}EXISTS (SELECT 1 FROM {below['inner']} r")
        for place, (outer, inner) in enumerate(keys):
            self._say(" AND " if place else " WHERE ")
            self._expression(outer, f"{path}.keys[{place}][0]")
            self._say(" = ")
            self._put(f"r.{quoted(inner)}", f"{path}.keys[{place}][1]")
        self._say(")")

    def _allowed(self, allowed: Mapping[str, float]) -> None:
        self._say("\nWITH (")
        for place, (name, value) in enumerate(allowed.items()):
            self._say(f"{', ' if place else ''}{name} = ")
            self._put(repr(value), f"with.{name}")
        self._say(")")

    def _insert(self, emit: Mapping[str, Any]) -> None:
        self._say("INSERT INTO ")
        self._put(quoted(emit["insert"]), "emit.insert")
        if "columns" in emit:
            self._say(" (")
            self._put(", ".join(map(quoted, emit["columns"])), "emit.columns")
            self._say(")")
        self._say("\n")

    def _emit(self, emit: Mapping[str, Any]) -> None:
        self._say("\nEMIT CHANGES")
        if "into" in emit:
            self._say(" INTO ")
            self._put(quoted(emit["into"]), "emit.into")
        if emit.get("on_close"):
            self._say(" ON WINDOW CLOSE")
        options = [f"{name} = '{emit[name]}'" for name in ("format", "encoding") if name in emit]
        if "snapshot" in emit:
            options.append(f"snapshot = {str(emit['snapshot']).lower()}")
        if options:
            self._say(f" WITH ({', '.join(options)})")
