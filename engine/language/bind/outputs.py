"""The columns of a SELECT: which there are and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.language.bind.scope import Scope, column_at
from engine.language.grammar import nodes
from engine.language.grammar.cursor import NAME_CHARACTERS_MAX
from tureen.errors import SyntaxRefused


@dataclass(frozen=True, slots=True)
class WrittenOutput:
    """One column as written, stars resolved. alias: whether the text names it."""

    name: str
    node: exp.Expr
    alias: bool = False


def written_outputs(projections: Sequence[exp.Expr], scope: Scope) -> list[WrittenOutput]:
    """The columns in order. Raises UnknownSource, LimitExceeded."""
    found: list[WrittenOutput] = []
    for place, projection in enumerate(projections):
        if isinstance(projection, exp.Star):
            found += _changed(_all_columns(projection, scope), projection, scope)
        elif isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star):
            scope.names.check_qualifier(projection.args["table"], scope.clause, scope.binding)
            columns = _all_columns(projection, scope, str(projection.args["table"].this))
            found += _changed(columns, projection.this, scope)
        elif isinstance(projection, exp.Alias):
            found.append(WrittenOutput(str(projection.args["alias"].this), projection.this, alias=True))
        else:
            found.append(WrittenOutput(_derived_name(projection, place), projection))
        if len(found) > scope.binding.limits.outputs_max:
            raise scope.place(projections[0]).exceeded("outputs_max", scope.binding.limits.outputs_max)
    return found


def _all_columns(star: exp.Expr, scope: Scope, qualifier: str | None = None) -> list[WrittenOutput]:
    if not scope.names.columns and not scope.names.parts:
        raise scope.place(star).refuse(SyntaxRefused, "* needs FROM", hint="write SELECT * FROM the stream")
    if not scope.names.parts:
        return [WrittenOutput(name, column_at(name, star)) for name in scope.names.columns]
    columns = list(scope.names.star)
    if qualifier is not None:
        parts = (part for part in scope.names.parts if part.name == qualifier)
        columns = [pair for part in parts for pair in part.columns.items()]
    found = []
    for name, place in columns:
        column = column_at(name, star)
        column.meta["place"] = place
        found.append(WrittenOutput(name, column))
    return found


def _changed(columns: list[WrittenOutput], star: exp.Expr, scope: Scope) -> list[WrittenOutput]:
    """With EXCEPT, REPLACE and RENAME behind the star. Raises UnknownColumn, SyntaxRefused."""
    gone = {_known(name, columns, scope) for name in star.args.get("except_") or ()}
    replaced = {
        _known(one.args["alias"], columns, scope): WrittenOutput(one.alias, one.this, alias=True)
        for one in star.args.get("replace") or ()
    }
    new_names = {_known(one.this, columns, scope): one.alias for one in star.args.get("rename") or ()}
    if columns and len(gone) == len({column.name for column in columns}):
        raise scope.place(star).refuse(SyntaxRefused, "EXCEPT leaves no column", hint="name fewer columns")
    return [
        replace(replaced.get(column.name, column), name=new_names.get(column.name, column.name))
        for column in columns
        if column.name not in gone
    ]


def _known(name: exp.Expr, columns: Sequence[WrittenOutput], scope: Scope) -> str:
    """The name of one of the columns."""
    wanted = str(name.this)
    if all(column.name != wanted for column in columns):
        raise scope.place(name).unknown_column(wanted, [column.name for column in columns])
    return wanted


def _derived_name(node: exp.Expr, place: int) -> str:
    """The name of the column or the member, or of what has a subscript; a function's or cast column's name in
    lower case; else column and its number.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return str(node.this.this)
    if "called" in node.meta:
        return str(node.meta["called"])
    if isinstance(node, nodes.Call) and str(node.args["name"]) in _PARTS:
        owner, part = node.expressions[:2]
        if node.args["name"] in _NAMES:
            name = str(part.this).strip("{}").rpartition(",")[2].strip(' "')
            return name if 0 < len(name) <= NAME_CHARACTERS_MAX else _derived_name(owner, place)
        if part.is_string and 0 < len(part.this) <= NAME_CHARACTERS_MAX:
            return str(part.this)
        return _derived_name(owner, place)
    if isinstance(node, nodes.Call | nodes.WindowFunctionOver):
        return str(node.args["name"]).lower()
    if isinstance(node, nodes.ValueQuery) and isinstance(node.args["query"], nodes.SelectQuery):
        first = node.args["query"].expressions[0]
        return first.alias or _derived_name(first, place)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
        return str(node.this.this.this)
    if isinstance(node, exp.Case):
        return "case"
    return f"column_{place + 1}"


_NAMES = frozenset(["#>", "#>>"])
_PARTS = frozenset([".", "->", "->>", "[]", "[:]", *_NAMES])
"""Calls that take a part of a nested value."""


def unique(names: Sequence[str]) -> list[str]:
    """Answers are tables whose columns have different names: a second ``a`` becomes ``a_2``."""
    taken = set(names)
    seen: set[str] = set()
    result = []
    for wanted in names:
        name, count = wanted, 1
        while name in seen:
            count += 1
            candidate = f"{wanted}_{count}"
            if candidate not in taken:
                name = candidate
        seen.add(name)
        taken.add(name)
        result.append(name)
    return result
