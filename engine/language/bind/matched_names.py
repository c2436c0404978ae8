"""UNION BY NAME, and CORRESPONDING of any set operation: which columns of two SELECTs meet.

    a BY NAME b                 all columns of both, NULL where a side has none of that name
    a CORRESPONDING b           those that both have
    a CORRESPONDING BY (x) b    those named

They come in the order of the left side, then of the right one.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.language.bind.environment import Environment
from engine.language.bind.relation import BoundRelation
from engine.language.places import shown
from engine.model.expressions import Literal
from tureen.errors import NotSupported, SyntaxRefused


def matched_by_name(
    left: BoundRelation, right: BoundRelation, step: exp.Expr, env: Environment
) -> tuple[BoundRelation, BoundRelation]:
    """Both sides with the columns that meet, in one order.

    Raises UnknownColumn for one that CORRESPONDING BY names and a side has not, SyntaxRefused where no
    columns meet, NotSupported for BY NAME of another operation than UNION.
    """
    place, word = env.text.of_node(step.args["query"]), step.args["kind"].upper()
    ours = {output.name: output for output in left.columns}
    theirs = {output.name: output for output in right.columns}
    if step.args["matched"] == "by name":
        if word != "UNION":
            raise place.refuse(
                NotSupported,
                f"{word} BY NAME is not supported",
                hint=f"write {word} CORRESPONDING, which compares the columns that both have",
            )
        names = list(dict.fromkeys([*ours, *theirs]))
    elif step.args.get("by"):
        names = [str(name.this) for name in step.args["by"]]
        for name, written in zip(names, step.args["by"], strict=True):
            for side in (ours, theirs):
                if name not in side:
                    raise env.text.of_node(written).unknown_column(name, side)
        if len(set(names)) < len(names):
            raise env.text.of_node(step.args["by"][0]).refuse(
                SyntaxRefused, "CORRESPONDING BY names a column twice", hint="leave one of them out"
            )
    else:
        names = [name for name in ours if name in theirs]
        if not names:
            raise place.refuse(
                SyntaxRefused,
                f"no column before {word} is called like one behind it",
                hint=f"name them alike with AS; before it are {', '.join(map(shown, [*ours][:12]))}",
            )
    return (
        replace(left, columns=tuple(_column(name, ours, theirs) for name in names)),
        replace(right, columns=tuple(_column(name, theirs, ours) for name in names)),
    )


def _column(name: str, own: dict[str, Output], other: dict[str, Output]) -> Output:
    """The column of that name; where there is none NULL, of the type that the other one has."""
    return own[name] if name in own else Output(name, Literal(None, other[name].type))
