"""Whether a plan is one: its fields, what its names stand for, and that no operator stands above itself.

What is wrong is said with the path to it: ``nodes.by_dest.keys.dest``. Expressions are texts here: whether
columns and types fit is known when the plan's text is bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tureen.errors import PlanRefused
from tureen.plan_files.schema import (
    ALLOWED,
    DEPTH_MAX,
    EMIT,
    FUNCTIONS,
    NODES_MAX,
    OF_OPERATORS,
    OPERATORS,
    STREAM_OPERATORS,
    TEXT_CHARACTERS_MAX,
    VERSION,
    Field,
)

Plan = Mapping[str, Any]
Node = Mapping[str, Any]

NAME_CHARACTERS_MAX = 200
_FIELDS = ("version", "nodes", "output", "stream", "with", "emit", "sql", "options", "operators")


def check(plan: Any) -> Plan:
    """The plan, if it is one. Raises PlanRefused. O(size)."""
    if not isinstance(plan, Mapping):
        raise PlanRefused("plan", "a plan is an object", hint='{"version": 1, "nodes": {...}, "output": ...}')
    unknown = [name for name in plan if name not in _FIELDS]
    if unknown:
        raise PlanRefused(str(unknown[0]), "there is no such field", hint=f"there are {', '.join(_FIELDS)}")
    version = plan.get("version")
    if version != VERSION or isinstance(version, bool):
        raise PlanRefused("version", f"{version!r} is not known", hint=f"this is version {VERSION}")
    _check_values(plan.get("options", {}), "options", null=True)
    operators = plan.get("operators", {})
    if not isinstance(operators, Mapping):
        raise PlanRefused("operators", "is an object of entities by id")
    for id_, values in operators.items():
        _check_values(values, f"operators.{id_}", null=False)
    if "sql" in plan:
        return _text_alone(plan)
    nodes = plan.get("nodes")
    if not isinstance(nodes, Mapping) or not nodes:
        raise PlanRefused("nodes", "is an object of operators by name", hint="at least one scan")
    if len(nodes) > NODES_MAX:
        raise PlanRefused("nodes", f"{len(nodes):,} operators are more than {NODES_MAX}")
    for name, node in nodes.items():
        _check_name(name, "nodes")
        _check_node(node, f"nodes.{name}")
    output = plan.get("output")
    if not isinstance(output, str) or output not in nodes:
        raise PlanRefused("output", f"there is no operator {output!r}", hint=_known(nodes))
    _check_shape(nodes)
    unread = nodes.keys() - _below(nodes, output)
    if unread:
        raise PlanRefused(
            f"nodes.{min(unread)}", "nothing reads it", hint="leave it out, or let a node read it"
        )
    if "stream" in plan and plan["stream"] not in STREAM_OPERATORS:
        raise PlanRefused("stream", f"{plan['stream']!r} is not known", hint=", ".join(STREAM_OPERATORS))
    if "with" in plan:
        if not isinstance(plan["with"], Mapping) or not plan["with"]:
            raise PlanRefused("with", "is an object of names and amounts", hint=", ".join(ALLOWED))
        _check_fields(plan["with"], ALLOWED, "with")
    if "emit" in plan:
        if not isinstance(plan["emit"], Mapping):
            raise PlanRefused("emit", "is an object", hint="{} for EMIT CHANGES")
        _check_fields(plan["emit"], EMIT, "emit")
    return plan


def _text_alone(plan: Plan) -> Plan:
    more = plan.keys() & set(OF_OPERATORS)
    if more:
        raise PlanRefused(f"{min(more)}", "a plan has operators, or its whole text as sql")
    if not isinstance(plan["sql"], str) or not plan["sql"].strip():
        raise PlanRefused("sql", "is a SELECT")
    return plan


def inputs_of(node: Node) -> Iterator[tuple[str, str]]:
    """The names of the nodes that one reads, each with its field."""
    for name, field in OPERATORS[node["op"]].items():
        if field.type == "node":
            yield name, node[name]


def in_order(plan: Plan) -> list[str]:
    """The names of the nodes, each behind those that it reads; of a plan that was checked."""
    done: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in done:
            for _, below in inputs_of(plan["nodes"][name]):
                visit(below)
            done[name] = None

    visit(plan["output"])
    return list(done)


def _below(nodes: Mapping[str, Node], output: str) -> set[str]:
    found: set[str] = set()
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [below for _, below in inputs_of(nodes[name])]
    return found


def _check_shape(nodes: Mapping[str, Node]) -> None:
    """No name that stands for nothing, no cycle, and not too deep. Without recursion."""
    for name, node in nodes.items():
        for field, below in inputs_of(node):
            if below not in nodes:
                path = f"nodes.{name}.{field}"
                raise PlanRefused(path, f"there is no operator {below!r}", hint=_known(nodes))
    depth: dict[str, int] = {}
    for start in nodes:
        trail: list[str] = []
        waiting: list[tuple[str, bool]] = [(start, False)]
        while waiting:
            name, leaving = waiting.pop()
            if leaving:
                trail.pop()
                depth[name] = 1 + max((depth[below] for _, below in inputs_of(nodes[name])), default=0)
                if depth[name] > DEPTH_MAX:
                    raise PlanRefused(
                        f"nodes.{name}", f"more than {DEPTH_MAX} operators stand above each other"
                    )
            elif name in depth:
                continue
            elif name in trail:
                cycle = " -> ".join([*trail[trail.index(name) :], name])
                raise PlanRefused(f"nodes.{name}", f"it reads its own rows: {cycle}")
            else:
                trail.append(name)
                waiting.append((name, True))
                waiting += [(below, False) for _, below in inputs_of(nodes[name])]


def _check_node(node: Any, path: str) -> None:
    if not isinstance(node, Mapping):
        raise PlanRefused(path, "an operator is an object", hint='{"op": "scan", "source": "..."}')
    op = node.get("op")
    fields = OPERATORS.get(op) if isinstance(op, str) else None
    if fields is None:
        raise PlanRefused(
            f"{path}.op", f"there is no operator {op!r}", hint=f"there are {', '.join(OPERATORS)}"
        )
    _check_fields({name: value for name, value in node.items() if name != "op"}, fields, path)
    if op == "scan" and ("begin" in node) != ("end" in node):
        raise PlanRefused(path, "begin and end come together")
    if op == "scan" and "begin" in node and "window" in node:
        raise PlanRefused(f"{path}.window", "it has begin and end too", hint="leave one of them out")
    if op == "limit" and not node.keys() & {"count", "offset"}:
        raise PlanRefused(path, "count or offset is missing")
    if op == "aggregate" and not node.keys() & {"keys", "calls"}:
        raise PlanRefused(path, "keys or calls are missing")
    if op == "join" and ("on" in node) == (node.get("kind") == "cross"):
        raise PlanRefused(f"{path}.on", "a cross join has none, every other join has one")


def _check_fields(given: Mapping[str, Any], fields: Mapping[str, Field], path: str) -> None:
    for name in given:
        if name not in fields:
            known = ", ".join(fields)
            raise PlanRefused(f"{path}.{name}", "there is no such field", hint=f"there are {known}")
    for name, field in fields.items():
        if name in given:
            _check_field(given[name], field, f"{path}.{name}")
        elif field.required:
            raise PlanRefused(f"{path}.{name}", f"is missing: {field.about}")


def _check_field(value: Any, field: Field, path: str) -> None:
    match field.type:
        case "node" | "name":
            _check_name(value, path)
        case "text" | "window" | "expression":
            _check_text(value, path)
        case "expressions":
            _check_list(value, path)
            for place, one in enumerate(value):
                _check_text(one, f"{path}[{place}]")
        case "columns":
            if not isinstance(value, Mapping) or not value:
                raise PlanRefused(path, f"is an object: {field.about}")
            for name, one in value.items():
                _check_name(name, path)
                _check_text(one, f"{path}.{name}")
        case "count":
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise PlanRefused(path, f"{value!r} is no number of rows")
        case "amount":
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise PlanRefused(path, f"{value!r} is no amount", hint="a number from 0")
        case "flag":
            if not isinstance(value, bool):
                raise PlanRefused(path, f"{value!r} is neither true nor false")
        case "kind":
            if value not in field.choices:
                raise PlanRefused(path, f"{value!r} is not known", hint=f"one of {', '.join(field.choices)}")
        case "keys":
            _check_list(value, path)
            for place, pair in enumerate(value):
                if not isinstance(pair, list | tuple) or len(pair) != 2:
                    raise PlanRefused(f"{path}[{place}]", "is an expression and a column of inner")
                _check_text(pair[0], f"{path}[{place}][0]")
                _check_name(pair[1], f"{path}[{place}][1]")
        case "names":
            _check_list(value, path)
            for place, one in enumerate(value):
                _check_name(one, f"{path}[{place}]")
        case "function":
            _check_function(value, path)


def _check_function(value: Any, path: str) -> None:
    name = value.get("name") if isinstance(value, Mapping) else None
    if not isinstance(name, str) or name not in FUNCTIONS:
        raise PlanRefused(f"{path}.name", f"{name!r} is not known", hint=f"one of {', '.join(FUNCTIONS)}")
    arguments = FUNCTIONS[name]
    for each, given in value.items():
        if each != "name" and each not in arguments:
            raise PlanRefused(f"{path}.{each}", f"{name} has none", hint=f"it has {', '.join(arguments)}")
        if each == "partition":
            _check_list(given, f"{path}.{each}")
            for place, one in enumerate(given):
                _check_text(one, f"{path}.{each}[{place}]")
        else:
            _check_text(given, f"{path}.{each}")
    for each in arguments:
        if each not in value and each not in ("offset", "partition"):
            raise PlanRefused(f"{path}.{each}", "is missing")


def _check_name(value: Any, path: str) -> None:
    if not isinstance(value, str) or not value or len(value) > NAME_CHARACTERS_MAX or "\0" in value:
        raise PlanRefused(path, f"{value!r} is no name", hint=f"1 to {NAME_CHARACTERS_MAX} characters")


def _check_list(value: Any, path: str) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise PlanRefused(path, "is a list with at least one item")


def _check_values(values: Any, path: str, *, null: bool) -> None:
    if not isinstance(values, Mapping):
        raise PlanRefused(path, "is an object of names and values")
    for name, value in values.items():
        if not isinstance(value, str | int | float | bool) and not (null and value is None):
            raise PlanRefused(f"{path}.{name}", "is neither a text nor a number nor true nor false")


def _check_text(value: Any, path: str) -> None:
    """A text that stands in one place: it neither ends the bracket around it nor begins a comment."""
    if not isinstance(value, str) or not value.strip():
        quoted = f'write it in quotes: "{value}"' if isinstance(value, int | float) else None
        raise PlanRefused(path, "is a text in SQL", hint=quoted)
    if len(value) > TEXT_CHARACTERS_MAX:
        raise PlanRefused(path, f"{len(value):,} characters are more than {TEXT_CHARACTERS_MAX:,}")
    depth, place = 0, 0
    while place < len(value):
        character = value[place]
        if character in "'\"":
            place += 1
            while place < len(value) and value[place] != character:
                place += 1
            if place == len(value):
                raise PlanRefused(path, f"a {character} is not closed")
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
            if depth < 0:
                raise PlanRefused(path, f"a {character} closes nothing")
        elif character == ";" or value.startswith(("--", "/*"), place):
            raise PlanRefused(path, "semicolons and comments are not allowed in an expression")
        place += 1
    if depth:
        raise PlanRefused(path, "a bracket is not closed")


def _known(nodes: Mapping[str, Any]) -> str:
    return f"there are {', '.join(sorted(map(str, nodes))[:20])}"
