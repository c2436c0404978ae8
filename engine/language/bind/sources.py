"""One item of FROM: a stream, a table, a view, a name of WITH, a table function or a subquery, with its
window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.algebra.streamed.stage import StreamOperator
from engine.language.bind.constants import bind_rows, is_constant, refuse_clauses_of_constants
from engine.language.bind.environment import Environment
from engine.language.bind.placing import narrowed
from engine.language.bind.relation import BoundRelation, base
from engine.language.bind.scope import Scope
from engine.language.bind.series import bind_series
from engine.language.bind.table_functions import bind_table_function
from engine.language.bind.windows import bind_down_to, bind_window
from engine.language.dialect import parse_tree
from engine.language.grammar import nodes, source_nodes
from engine.language.places import Place, Text, shown
from engine.model.sample import Sample
from engine.model.source import Derived, SourceName
from engine.windows.assignment import WINDOW_COLUMNS
from tureen.errors import LimitExceeded, NotSupported, QueryError, SyntaxRefused

DERIVED_DEPTH_MAX = 16
RSTREAM_REFUSED = "RSTREAM of what reads a stream of a subquery is not supported"
RSTREAM_HINT = "write ISTREAM, or RSTREAM of what reads streams and tables"

Select = Callable[[exp.Expr, Environment], BoundRelation]


def bind_item(
    item: exp.Expr, ends: exp.Expr | None, env: Environment, select: Select, *, alone: bool = True
) -> tuple[BoundRelation, str | None]:
    """The relation and what may stand before the dot of its columns.

    ``select`` binds a SELECT. ends: BEGIN ... END ..., which is no window of a table unless the table stands
    alone. Raises UnknownSource, and what binding windows and subqueries raises.
    """
    this = item.this
    name: str | None = None
    if isinstance(this, nodes.SelectQuery | nodes.SetQuery):
        relation = with_operator(select(this, env), this)
    elif isinstance(this, source_nodes.ValueRows):
        relation = bind_rows(this, env)
    elif isinstance(this, source_nodes.Series):
        relation, name = bind_series(this, env), str(this.args["name"]).lower()
    elif isinstance(this, source_nodes.TableFunction):
        name = str(this.this.this)
        relation = named(this.this, env, select)
        relation = assigned(this, relation, env.scope(relation, name))
    else:
        name = str(this.this)
        relation = named(this, env, select)
    alias = item.args.get("alias")
    if alias is not None:
        name = str(alias.this)
    refuse_clauses_of_constants(relation, item, env)
    relation = as_stream(relation, env.text.of_node(item))
    relation = renamed(relation, item.args.get("names") or (), env.text.of_node(item))
    sample = item.args.get("sample")
    if sample is not None:
        relation = sampled(relation, sample, env.text.of_node(sample))
    clause = item.args.get("window")
    if not alone and (is_constant(relation) or (relation.stream.is_table and relation.is_open)):
        ends = None
    written = ends if clause is None else clause
    if written is None:
        return relation, name
    if relation.stream.is_table and relation.is_open:
        raise env.text.of_node(written).refuse(
            NotSupported,
            f"{shown(relation.stream.name)} is a table: it has one row for each key, and no window",
            hint="leave the window out",
        )
    if not relation.is_open:
        if clause is None:
            raise env.text.of_node(written).refuse(
                NotSupported,
                "BEGIN ... END ... is the window of a stream, or of a subquery that only selects from one",
                hint="write it inside, or a window in brackets: FROM (SELECT ...) [RANGE 10 MINUTES]",
            )
        return over_stream(relation, clause, env, name), name
    window, condition = bind_window(clause, ends, env.scope(relation, name).at("a window"))
    relation = relation.windowed(window, bind_down_to(clause, env.scope(relation, name)))
    return relation if condition is None else narrowed(relation, [condition]), name


def with_operator(relation: BoundRelation, tree: exp.Expr) -> BoundRelation:
    """The relation of a SELECT, with the stream operator that its text has."""
    operator = tree.args.get("operator")
    if operator is None:
        return relation
    return replace(relation, operator=cast("StreamOperator", str(operator.this).lower()))


def as_stream(relation: BoundRelation, place: Place) -> BoundRelation:
    """What FROM sees of a relation: the stream of its changes where its text has a stream operator.

    Raises NotSupported for RSTREAM of rows that are those of a stream of a subquery.
    """
    if relation.operator is None:
        return relation
    if relation.operator == "rstream" and relation.has_streams:
        raise place.refuse(NotSupported, RSTREAM_REFUSED, hint=RSTREAM_HINT)
    return replace(relation, operator=None).streamed(relation.operator)


def over_stream(
    relation: BoundRelation, clause: exp.Expr, env: Environment, name: str | None
) -> BoundRelation:
    """The relation as a stream, ISTREAM of it where it is none, with a window over that.

    Raises what binding windows raises, NotSupported for DOWN TO.
    """
    down_to = clause.args.get("down_to")
    if down_to is not None:
        raise env.text.of_node(down_to).refuse(
            NotSupported,
            "DOWN TO is allowed in the window of a source, this is one over a subquery",
            hint="write it in a window inside, or leave it out",
        )
    if relation.open_stream is None:
        relation = relation.streamed("istream")
    window, condition = bind_window(clause, None, env.scope(relation, name).at("a window"))
    relation = relation.stream_windowed(window)
    return relation if condition is None else narrowed(relation, [condition])


def named(identifier: exp.Expr, env: Environment, select: Select) -> BoundRelation:
    """What a name in FROM stands for. Raises UnknownSource."""
    name = str(identifier.this)
    table = env.tables.get(name)
    if table is not None:
        return table
    found = env.catalogue.get(name)
    if found is None:
        raise env.text.of_node(identifier).unknown_source(name, [*env.tables, *env.catalogue])
    if not isinstance(found, Derived):
        env.met.setdefault(found.name, env.around or env.text.of_node(identifier))
        return base(found)
    env.uses[found.name] = None
    known = env.derived.get(name)
    if known is None:
        known = env.derived[name] = _derived(found, env.text.of_node(identifier), env, select)
    return known


class _DerivedRefused(NotSupported):
    """The refusal of a view's text."""


def _derived(derived: Derived, place: Place, env: Environment, select: Select) -> BoundRelation:
    """What a view selects. A refusal of its text becomes one of the text that names it."""
    if env.depth >= DERIVED_DEPTH_MAX:
        raise place.exceeded(
            "views_depth_max", DERIVED_DEPTH_MAX, hint="let the view select from the stream itself"
        )
    text = Text(derived.sql)
    try:
        tree = parse_tree(text, env.limits)
        if not isinstance(tree, nodes.SelectQuery):
            raise text.at(0).refuse(SyntaxRefused, "this is no SELECT")
        return with_operator(select(tree, env.inside(text, place)), tree)
    except _DerivedRefused as error:  # it names the innermost
        raise place.refuse(_DerivedRefused, error.message, hint=error.hint) from None
    except (QueryError, LimitExceeded) as error:
        where = f" (its line {error.line}, column {error.column})" if error.line is not None else ""
        raise place.refuse(
            _DerivedRefused,
            f"{shown(derived.name)} cannot be read: {error.message}{where}",
            hint=error.hint or "create it anew",
        ) from None


def assigned(function: exp.Expr, relation: BoundRelation, scope: Scope) -> BoundRelation:
    """The relation, of this scope, with a table function over it."""
    place = scope.place(function)
    if relation.stream.is_table and relation.is_open:
        raise place.refuse(
            NotSupported,
            f"{shown(relation.stream.name)} is a table: it has one row for each key, and no windows",
            hint=f"leave {function.args['name']} out",
        )
    if not relation.is_open or relation.scan.assignment is not None:
        raise place.refuse(
            NotSupported,
            f"{function.args['name']} takes a stream, or a view that only selects from one",
            hint="put the table function inside the view",
        )
    for output in relation.columns:
        if output.name in WINDOW_COLUMNS:
            raise place.refuse(
                NotSupported,
                f"{function.args['name']} gives a column {output.name}, and there is one already",
                hint="give that column another name",
            )
    return relation.assigned(bind_table_function(function, scope.at("a table function")))


def sampled(relation: BoundRelation, clause: exp.Expr, place: Place) -> BoundRelation:
    """The relation with its SAMPLE: of a table by the records of its rows, of a table function by the rows
    that it takes, before it cuts time into windows, of a subquery by what the elements of its stream are.
    Raises NotSupported for a second one, and for what a stream of a subquery has not.
    """
    sample = Sample(clause.this, clause.args.get("down_to"), clause.args.get("seed"))
    if not relation.is_open and relation.open_stream is None:
        relation = relation.streamed("istream")
    if (relation.scan.sample is not None and relation.is_open) or relation.stream_sample is not None:
        raise place.refuse(
            NotSupported, "these rows are a sample already", hint="write the smaller percentage inside"
        )
    if relation.is_open:
        return relation.sampled(sample)
    if sample.down_to is not None:
        raise place.refuse(
            NotSupported,
            "DOWN TO is allowed in the SAMPLE of a source, this is one of a subquery",
            hint="write it in a SAMPLE inside, or leave it out",
        )
    return relation.stream_sampled(sample)


def sampled_join(relation: BoundRelation, clause: exp.Expr, place: Place) -> BoundRelation:
    """Joins in brackets with their SAMPLE, which is that of the first stream's rows: each row of the joins is
    one of these. Raises NotSupported where a row may have several partners.
    """
    if not relation.is_many_one:
        raise place.refuse(
            NotSupported,
            "SAMPLE of joins is allowed where a stream is joined with tables by their keys",
            hint="write it after a source, or after a subquery: FROM (SELECT ...) SAMPLE(10)",
        )
    if relation.scan.sample is not None:
        raise place.refuse(
            NotSupported, "these rows are a sample already", hint="write the smaller percentage inside"
        )
    return relation.sampled(Sample(clause.this, clause.args.get("down_to"), clause.args.get("seed")))


def renamed(relation: BoundRelation, names: Sequence[exp.Expr], place: Place) -> BoundRelation:
    """With these names for its columns; none: as they are."""
    if not names:
        return relation
    if len(names) != len(relation.columns):
        raise place.refuse(
            SyntaxRefused,
            f"{len(names)} names are given for {len(relation.columns)} columns",
            hint="name every column once, or leave the names out",
        )
    new = [str(name.this) for name in names]
    for at, name in enumerate(new):
        if name in new[:at]:
            raise place.refuse(
                SyntaxRefused, f"the name {shown(name)!r} is given twice", hint="rename one of them"
            )
    columns = tuple(
        Output(name, output.expression) for name, output in zip(new, relation.columns, strict=True)
    )
    return replace(relation, columns=columns)


def uses_of(env: Environment) -> tuple[SourceName, ...]:
    """The views that were read."""
    return tuple(env.uses)
