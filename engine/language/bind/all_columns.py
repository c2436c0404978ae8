"""GROUP BY ALL and ORDER BY ALL: the columns of SELECT, by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from engine.language.bind.grouping import holds_aggregate
from engine.language.bind.outputs import WrittenOutput
from engine.language.grammar import nodes


def keys_written(tree: exp.Expr, outputs: Sequence[WrittenOutput]) -> list[exp.Expr]:
    """The keys of GROUP BY: of ALL, each output that has a column and no aggregate and no window function."""
    keys: list[exp.Expr] = tree.args.get("group") or []
    if not keys or not isinstance(keys[0], nodes.AllColumns):
        return keys
    return [
        _number(place, keys[0])
        for place, output in enumerate(outputs, start=1)
        if _has_column(output.node) and not holds_aggregate(output.node)
    ]


def order_written(tree: exp.Expr, outputs: Sequence[WrittenOutput]) -> list[exp.Expr]:
    """The items of ORDER BY: of ALL, one for each output, in their order."""
    return list(_items(tree.args.get("order") or (), len(outputs)))


def _items(written: Sequence[exp.Expr], outputs: int) -> Iterator[exp.Expr]:
    for item in written:
        if not isinstance(item.this, nodes.AllColumns):
            yield item
            continue
        for place in range(1, outputs + 1):
            copied = item.copy()
            copied.set("this", _number(place, item))
            yield copied


def _has_column(node: exp.Expr) -> bool:
    is_over = node.find(nodes.WindowFunctionOver) is not None
    return not is_over and node.find(exp.Column) is not None


def _number(place: int, like: exp.Expr) -> exp.Literal:
    number = exp.Literal(this=str(place), is_string=False)
    number.meta.update(like.meta)
    return number
