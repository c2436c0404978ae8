"""TUMBLE, HOP and SESSION in GROUP BY, and the fields of a window: all in terms of window_start, window_end.

``GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR)`` means: FROM TUMBLE(s, INTERVAL '1' HOUR), what WHERE keeps
of it, GROUP BY k, window_start, window_end. A session is one of the rows that WHERE keeps and that have the
same other keys. A selected window ``w`` is the two columns ``w_start`` and ``w_end``, and ``w.start``
names the first of them; ``w`` alone stands for both wherever columns are listed, and in ``a.w = b.w``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.language.bind.outputs import WrittenOutput
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import same_window
from engine.language.bind.scope import Scope, column_at
from engine.language.bind.sources import assigned
from engine.language.grammar import nodes, source_nodes
from engine.windows.assignment import WINDOW_COLUMNS
from tureen.errors import NotSupported


def window_call(items: Sequence[exp.Expr], scope: Scope) -> exp.Expr | None:
    """The one window among the items of a GROUP BY, None where there is none. Raises NotSupported."""
    found = [item for item in items if isinstance(item, nodes.WindowCall) and item.args.get("part") is None]
    if len(found) > 1:
        raise scope.place(found[1]).refuse(
            NotSupported, "rows are grouped by one window", hint="register one query for each window"
        )
    return found[0] if found else None


def in_windows(
    call: exp.Expr, keys: Sequence[exp.Expr], relation: BoundRelation, scope: Scope
) -> BoundRelation:
    """The relation with its rows put into windows. Raises what a table function raises."""
    if scope.names.parts or relation.joins:
        name = call.args["name"]
        raise scope.place(call).refuse(
            NotSupported,
            f"{name} in GROUP BY is about one stream, not about joined rows",
            hint=f"put it into FROM: {name}(a, ...) x JOIN {name}(b, ...) y ON x.window_end = y.window_end "
            "AND ..., or group by DATE_TRUNC('hour', x.ts)",
        )
    column = call.args.get("column")
    if column is not None and not isinstance(column, exp.Column):
        raise scope.place(column).refuse(
            NotSupported,
            "windows follow the stream's own time",
            hint=f"name its time column, or leave it out: {call.args['name']}(INTERVAL ...)",
        )
    function = source_nodes.TableFunction(
        this=exp.Identifier(this=scope.names.source.name, quoted=True),
        name=call.args["name"],
        keys=list(keys) if call.args["name"] == "SESSION" else [],
        column=None if column is None else column.this,
        durations=call.args["durations"],
    )
    function.meta.update(call.meta)
    return assigned(function, relation, scope)


def expanded(items: Sequence[exp.Expr], scope: Scope) -> list[exp.Expr]:
    """A list of columns, windows as their two columns."""
    found: list[exp.Expr] = []
    for item in items:
        found += _pair(item, scope) or [item]
    return found


def expanded_outputs(outputs: Sequence[WrittenOutput], scope: Scope) -> list[WrittenOutput]:
    """Selected columns, windows as two."""
    found: list[WrittenOutput] = []
    for output in outputs:
        pair = _pair(output.node, scope)
        if not pair:
            found.append(output)
            continue
        name = "window" if isinstance(output.node, nodes.WindowCall) and not output.alias else output.name
        found += [
            WrittenOutput(f"{name}_{end}", column) for end, column in zip(("start", "end"), pair, strict=True)
        ]
    return found


def expanded_equality(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """A condition, the equality of two windows as that of their beginnings and that of their ends."""
    equality = node.unnest()
    if isinstance(equality, exp.EQ):
        left, right = _pair(equality.this.unnest(), scope), _pair(equality.expression.unnest(), scope)
        if left and right:
            made = [_equal(*sides, equality) for sides in zip(left, right, strict=True)]
            node.meta["expanded"] = made  # what nodes were bound to is kept by their ids: they must live on
            return made
    return [node]


def _equal(left: exp.Expr, right: exp.Expr, node: exp.Expr) -> exp.Expr:
    equality = exp.EQ(this=left, expression=right)
    equality.meta.update(node.meta)
    return equality


def _pair(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """The columns of the window that a call or a name alone stands for; none where it is something else."""
    if isinstance(node, nodes.WindowCall):
        if scope.window is None or node.args.get("part") is not None or not same_window(node, scope.window):
            return []
        return [column_at(name, node) for name in WINDOW_COLUMNS]
    if not isinstance(node, exp.Column) or scope.find(node) is not None:
        return []
    pair: list[exp.Expr] = []
    for end in ("start", "end"):
        column = column_at(f"{node.this.this}_{end}", node)
        column.set("table", node.args.get("table"))
        if scope.find(column) is None:
            return []
        pair.append(column)
    return pair
