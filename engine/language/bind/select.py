"""A SELECT to a relation, clause by clause in the order in which they mean something.

FROM, WHERE        rows, named and narrowed
GROUP BY           Aggregate; HAVING narrows its rows
OVER               WindowFunctions and RowNumber, one for each window; QUALIFY narrows their rows
DISTINCT           Project, Distinct
ORDER BY, LIMIT    Sort, Limit
SELECT             the columns, computed at the very end where nothing needs them before
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from engine.algebra.limit.stage import Limit
from engine.algebra.project.stage import Output
from engine.algebra.sort.stage import Sort, SortKey
from engine.algebra.with_ties.stage import WithTies
from engine.language.bind.all_columns import keys_written, order_written
from engine.language.bind.allowed import with_allowed
from engine.language.bind.conditions import (
    BoundSubquery,
    Condition,
    Correlation,
    SubqueryJoin,
    apply,
    bind_conditions,
    conjuncts,
)
from engine.language.bind.constants import with_source
from engine.language.bind.emit import with_changes
from engine.language.bind.environment import Environment
from engine.language.bind.group_ages import with_ages
from engine.language.bind.group_windows import expanded, expanded_outputs
from engine.language.bind.grouping import KEYS_MAX, Grouping, KeySet, holds_aggregate
from engine.language.bind.grouping_sets import GroupItems
from engine.language.bind.implied import with_implied
from engine.language.bind.joins import Selects, bind_from
from engine.language.bind.ordering import require_few, require_varying, sort_key
from engine.language.bind.outputs import WrittenOutput, unique, written_outputs
from engine.language.bind.over import OverColumns
from engine.language.bind.preferences import bind_preference, with_preference
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import bind_condition, bind_scalar
from engine.language.bind.scope import Around, Scope
from engine.language.bind.set_operations import bind_sets
from engine.language.bind.sizes import check_size, check_stages
from engine.language.bind.sources import renamed, uses_of, with_operator
from engine.language.bind.subqueries.domain import with_domain
from engine.language.bind.subqueries.joined_value import SubqueryValue
from engine.language.bind.subqueries.rows import (
    equal_columns,
    first_of_each,
    is_limited,
    note_empties,
    note_rows,
    only_selects,
    value_of_groups,
)
from engine.language.bind.subqueries.values import SubqueryValues, ValuesOfGroups
from engine.language.bind.temporal_filters import TemporalFilter
from engine.language.grammar import nodes
from engine.language.places import shown
from engine.language.query import Query
from engine.language.rules import rewrite
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Expression
from engine.model.source import Stream
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch


def bind_query(tree: exp.Expr, env: Environment) -> Query:
    """A whole query. Raises QueryError and LimitExceeded with a place."""
    return with_behind(whole_query(bind_select(tree, env), env.text.sql, env), tree, env)


def with_behind(query: Query, tree: exp.Expr, env: Environment) -> Query:
    """The query of a SELECT that nothing is around, with all that stands behind it: what is wanted first,
    what becomes of its changes, what its answer allows. Raises QueryError and LimitExceeded with a place.
    """
    return with_allowed(with_changes(with_preference(query, tree, env), tree, env), tree, env)


def whole_query(relation: BoundRelation, sql: str, env: Environment) -> Query:
    """The query of a relation that nothing is around. Raises NotSupported where its streams have no time in
    common: there is no NOW of both.
    """
    query = with_source(relation.answered().query(sql, uses_of(env)), env)
    streams = [stream for name in query.sources if isinstance(stream := env.catalogue.get(name), Stream)]
    streams = [stream for stream in streams if not stream.is_table]
    for stream in streams:
        if stream.event_time != streams[0].event_time:
            arrival, other = (streams[0], stream) if stream.event_time else (stream, streams[0])
            raise env.met[stream.name].refuse(
                NotSupported,
                f"{shown(arrival.name)} runs in arrival time, {shown(other.name)} in event time",
                hint=f"let both have a timestamp, or make {shown(arrival.name)} a table: CREATE TABLE",
            )
    if query.has_streams and streams:
        _check_tables(query, streams[0].event_time, env)
    return with_implied(query, env.catalogue)


def _check_tables(query: Query, event_time: bool, env: Environment) -> None:
    """Raise NotSupported for a table beside streams of another kind of time where a subquery is a stream:
    there is no earlier instant of both.
    """
    for name in query.sources:
        table = env.catalogue.get(name)
        if isinstance(table, Stream) and table.is_table and table.event_time != event_time:
            raise env.met[table.name].refuse(
                NotSupported,
                f"{shown(table.name)} runs in another kind of time than the streams: a window over "
                "a subquery needs it as it was earlier",
                hint="give it a timestamp column, or none, as the streams have",
            )


def bind_select(tree: exp.Expr, env: Environment, correlation: Correlation | None = None) -> BoundRelation:
    """A SELECT, or several with set operations between them, as a relation; ``correlation``: what a subquery
    in a condition shares with what is around.
    """
    if isinstance(tree, nodes.SetQuery):
        return bind_sets(tree, env, bind_select)
    for table in tree.args.get("tables") or ():
        name = str(table.this.this)
        relation = renamed(
            with_operator(bind_select(table.args["query"], env), table.args["query"]),
            table.args.get("names") or (),
            env.text.of_node(table),
        )
        env = env.knowing(name, relation)
    return _Select(tree, env, correlation).bind()


def _bind_side(tree: exp.Expr, env: Environment, around: Scope) -> BoundRelation:
    """A side of a set operation in a subquery, or all of it. Raises NotSupported where one uses a column of
    the query around.
    """
    if isinstance(tree, nodes.SetQuery):
        return bind_sets(tree, env, partial(_bind_side, around=around))
    correlation = Correlation(around)
    relation = bind_select(tree, env, correlation)
    if correlation.is_used:
        raise env.text.of_node(tree).refuse(
            NotSupported,
            "this side of a set operation uses a column of the query around",
            hint="write EXISTS (SELECT ...) for each side",
        )
    return relation


class _Select:
    """One SELECT while it is bound."""

    def __init__(self, tree: exp.Expr, env: Environment, correlation: Correlation | None) -> None:
        self.tree = tree
        self.env = env
        self.correlation = correlation
        select: Callable[[exp.Expr, Environment], BoundRelation] = bind_select
        if correlation is not None and isinstance(tree.args["source"].this, nodes.SetQuery):
            select = partial(_bind_side, around=correlation.around)
        found = bind_from(tree.args["source"], tree.args.get("ends"), env, Selects(select, bind_select))
        self.relation, self.rows = found.relation, found.scope(env)
        if correlation is not None:
            self.rows = replace(self.rows, outer=Around(correlation.around))
            self.relation, self.rows = with_domain(self.relation, tree, self.rows, correlation, env)
        self.values = SubqueryValues(env, bind_select, self._join_value, self.relation)
        self.rows = replace(self.rows, values=self.values)
        self.numbered: list[WrittenOutput] = written_outputs(tree.expressions, self.rows)
        self.written = self.numbered
        self.aliases = {column.name: column.node for column in self.written if column.alias}
        self.over = OverColumns(tree.args.get("windows") or ())
        self.of_groups = ValuesOfGroups()

    def bind(self) -> BoundRelation:
        tree, env = self.tree, self.env
        rows = replace(self.rows, clause="WHERE", selected=self.aliases)
        preference = bind_preference(tree, self.relation, replace(self.rows, values=None), env)
        self.relation = replace(self.relation, preference=preference)
        where = bind_conditions(tree.args.get("where"), rows, env, bind_select, self.correlation)
        items = [self._key(self._meant(item, "GROUP BY")) for item in keys_written(tree, self.written)]
        self.items = GroupItems(items, tree.args.get("sets"))
        window = self.items.window(self.rows)
        if window is not None:
            self._check_size(None, where, [])
            self.relation = apply(self.relation, where, env.text.sql)
            where = []
            self.relation = self.items.in_windows(window, self.relation, self.rows)
            columns = env.scope(self.relation, None).names.columns
            self.rows = replace(self.rows, names=replace(self.rows.names, columns=columns), window=window)
        self.written = expanded_outputs(self.numbered, self.rows)
        keys, sets = self.items.keys(self.rows)
        grouping = self._grouping(keys, sets)
        scope = replace(self.rows, clause="SELECT", grouping=grouping, over=self.over)
        if self.correlation is not None and self.correlation.is_lateral and only_selects(tree, grouping):
            scope = replace(scope, outer=Around(self.correlation.around, is_mixed=True))
        if grouping is not None:
            scope = replace(scope, values=SubqueryValues(env, bind_select, self.of_groups.add))
        outputs = [bind_scalar(column.node, scope) for column in self.written]
        scope = replace(scope, aliases=self.aliases)
        order = self._order(outputs, scope.at("ORDER BY"))
        having = bind_conditions(
            tree.args.get("having"), replace(scope, clause="HAVING", over=None), env, bind_select
        )
        qualify = self._qualify(scope.at("QUALIFY"))
        correlated = self._correlated(grouping, bool(keys) and all(sets or ()))
        if correlated and self.correlation is not None and grouping is not None and not keys:
            note_empties(tree, grouping, outputs, having, self.correlation, self.rows)
        if self.correlation is not None and self.correlation.is_value and len(outputs) == 1:
            note_rows(tree, self.relation, self.correlation)
            if grouping is not None and not keys:
                outputs[0], having = value_of_groups(
                    tree, grouping, outputs[0], having, self.correlation, self.rows
                )
        self._check_size(grouping, [*where, *outputs, *having, *qualify], [key for key, _ in order])
        names = unique([column.name for column in self.written])
        self.relation = apply(self.relation, where, env.text.sql)
        groups: list[str] = []
        if grouping is not None:
            groups = self._group(grouping, names, outputs, with_ages(having, grouping, self.relation))
            outputs = [self._settled(output, groups) for output in outputs]
            correlated = [self._settled(expression, groups) for expression in correlated]
            order = [
                (replace(key, expression=self._settled(key.expression, groups)), item) for key, item in order
            ]
        settle = self._over(groups)
        if qualify:
            named = [transform(self._settled(condition, groups), settle) for condition in qualify]
            self.relation = self.relation.narrowed(named)
        order = [(replace(key, expression=transform(key.expression, settle)), item) for key, item in order]
        self._finish(names, [transform(output, settle) for output in outputs], order, correlated)
        check_stages(self.relation, self.rows.place(tree))
        return self.relation

    def _correlated(self, grouping: Grouping | None, has_keys: bool) -> list[Expression]:
        """What must equal something around. has_keys: as of :func:`equal_columns`."""
        if self.correlation is None or not self.correlation.is_used:
            return []
        return equal_columns(self.tree, grouping, has_keys, bool(self.over), self.correlation, self.env)

    def _join_value(self, value: SubqueryValue) -> Expression:
        """Rows with the value of a subquery; what stands for it."""
        self.relation, found = value.joined(self.relation, self.env.text.sql)
        return found

    # --- groups

    def _grouping(self, keys: Sequence[exp.Expr], sets: Sequence[KeySet] | None) -> Grouping | None:
        """The groups, by these keys; None where rows are not grouped."""
        tree = self.tree
        if not (
            keys
            or sets is not None
            or tree.args.get("having") is not None
            or any(holds_aggregate(column.node) for column in self.written)
            or any(holds_aggregate(item) for item in tree.args.get("order") or ())
        ):
            return None
        if len(keys) > KEYS_MAX:
            raise self.rows.place(keys[KEYS_MAX]).exceeded("group_keys_max", KEYS_MAX, len(keys))
        scope = replace(self.rows, clause="GROUP BY", aliases=self.aliases)
        grouping = Grouping(self.rows)
        equal = [] if self.correlation is None else [inner for inner, _ in self.correlation.pairs]
        equal += [] if self.rows.outer is None else self.rows.outer.columns.values()
        grouping.group_by([*(bind_scalar(node, scope) for node in keys), *equal], keys, sets)
        return grouping

    def _key(self, item: exp.Expr) -> exp.Expr:
        """What a name in GROUP BY stands for: a column, else the output of that name."""
        if isinstance(item, exp.Column) and item.args.get("table") is None and self.rows.find(item) is None:
            return self.aliases.get(str(item.this.this), item)
        return item

    def _group(
        self,
        grouping: Grouping,
        names: Sequence[str],
        outputs: Sequence[Expression],
        having: Sequence[Condition],
    ) -> list[str]:
        """Aggregate and HAVING; the names of the groups' columns: of the outputs that are just them."""
        called: list[str | None] = [None] * grouping.width
        for name, output in zip(names, outputs, strict=True):
            if isinstance(output, Column) and output.index >= 0 and called[output.index] is None:
                called[output.index] = name
        taken = {name for name in called if name is not None}
        groups: list[str] = []
        for given, plain in zip(called, grouping.plain_names(), strict=True):
            name, count = plain if given is None else given, 1
            while given is None and name in taken:
                count += 1
                name = f"{plain}_{count}"
            taken.add(name)
            groups.append(name)
        self.relation = self.items.grouped(self.relation, grouping, groups, self.env.text.sql)
        self.relation = self.of_groups.joined(
            self.relation, lambda expression: _named(expression, groups), self.env.text.sql
        )
        conditions: list[Condition] = [
            replace(condition, keys=tuple(self._settled(key, groups) for key in condition.keys))
            if isinstance(condition, SubqueryJoin)
            else condition
            if isinstance(condition, BoundSubquery | TemporalFilter)  # none of these: there are groups
            else self._settled(condition, groups)
            for condition in having
        ]
        self.relation = apply(self.relation, conditions, self.env.text.sql)
        return groups

    def _settled(self, expression: Expression, groups: Sequence[str]) -> Expression:
        """An expression over groups of these names, and over the values that stand beside them."""
        return self.of_groups.settled(_named(expression, groups))

    # --- columns, order

    def _meant(self, item: exp.Expr, clause: str) -> exp.Expr:
        """What a number in GROUP BY or ORDER BY stands for; other expressions are themselves."""
        require_varying(item, clause, [column.name for column in self.numbered], self.rows)
        if not isinstance(item, exp.Literal):
            return item
        text = str(item.this)
        place = int(text) if text.isdecimal() and len(text) < 6 else 0
        if not 1 <= place <= len(self.numbered):
            raise self.rows.place(item).refuse(
                SyntaxRefused,
                f"{shown(text)} in {clause} is no column of this SELECT, which has {len(self.numbered)}",
                hint="write the column's name, or its number from 1",
            )
        return self.numbered[place - 1].node

    def _order(self, outputs: Sequence[Expression], scope: Scope) -> list[tuple[SortKey, exp.Expr]]:
        """Sort keys, each with the item it comes from; a window is two."""
        keys: list[tuple[SortKey, exp.Expr]] = []
        items = order_written(self.tree, self.numbered)
        require_few(items, scope)
        for item in items:
            given = self._order_keys(item.this, outputs, scope)
            keys += [(sort_key(expression, item, scope), item) for expression in given]
        return keys

    def _order_keys(
        self, node: exp.Expr, outputs: Sequence[Expression], scope: Scope
    ) -> Iterator[Expression]:
        """Outputs by their number or name, else an expression over the columns before."""
        meant = self._meant(node, "ORDER BY")
        named = self._output_named(node, outputs, scope)
        if named is not None:
            yield named
        elif meant is not node:
            for part in expanded([meant], scope):
                yield bind_scalar(part, replace(scope, aliases={}))
        else:
            for part in expanded([self._key(node)], scope):
                yield bind_scalar(part, scope)

    def _output_named(self, node: exp.Expr, outputs: Sequence[Expression], scope: Scope) -> Expression | None:
        """The output that a name alone stands for."""
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            name = str(node.this.this)
            found = dict.fromkeys(
                output for column, output in zip(self.written, outputs, strict=True) if column.name == name
            )
            if len(found) > 1:
                raise scope.place(node).refuse(
                    SyntaxRefused,
                    f"several columns are called {shown(name)!r}",
                    hint="give them different names with AS, or write the column's number",
                )
            return next(iter(found), None)
        return None

    def _qualify(self, scope: Scope) -> list[Expression]:
        """The conditions that AND joins in QUALIFY."""
        node = self.tree.args.get("qualify")
        if node is None:
            return []
        found = [bind_condition(part, scope) for part in conjuncts(node, scope)]
        if not self.over:
            raise scope.place(node).refuse(
                SyntaxRefused,
                "QUALIFY needs a window function, here or in SELECT",
                hint="write WHERE for a condition on rows, HAVING for one on groups",
            )
        return found

    def _over(self, groups: Sequence[str]) -> Callable[[Expression], Expression]:
        """The stages of window functions; gives what puts their columns into expressions."""
        settle = self.over.settle(self.relation.width)
        for stage in self.over.stages():
            self.relation = self.relation.then(
                stage.with_expressions(lambda expression: rewrite(self._settled(expression, groups)))
            )
        return settle

    def _finish(
        self,
        names: Sequence[str],
        outputs: Sequence[Expression],
        order: Sequence[tuple[SortKey, exp.Expr]],
        correlated: Sequence[Expression],
    ) -> None:
        """DISTINCT, ORDER BY, LIMIT, and the columns that wait to be computed."""
        tree = self.tree
        columns = tuple(Output(name, output) for name, output in zip(names, outputs, strict=True))
        equal = [Output(f"equal_{place}", each) for place, each in enumerate(correlated, start=1)]
        self.relation = replace(self.relation, columns=(*columns, *equal))
        is_value = self.correlation is not None and self.correlation.is_value
        is_whole = is_value or (self.correlation is not None and self.correlation.is_lateral)
        if tree.args.get("distinct") and (is_whole or not self._is_correlated):
            order = [(self._distinct_key(key, item, outputs), item) for key, item in order]
            self.relation = self.relation.distinct()
        limit, offset = tree.args.get("limit"), tree.args.get("offset") or 0
        keys = _rewritten([key for key, _ in order])
        if correlated or (is_value and not is_limited(tree)):
            if is_limited(tree):
                parts = [output.expression for output in self.relation.columns[len(columns) :]]
                self.relation = first_of_each(self.relation, parts, keys, limit, offset)
            return
        if tree.args.get("ties") and limit is not None:
            self.relation = self.relation.then(WithTies(keys, limit, offset))
            return
        if keys:
            self.relation = self.relation.then(Sort(keys))
        if limit is not None or offset:
            self.relation = self.relation.then(Limit(limit, offset))

    def _distinct_key(self, key: SortKey, item: exp.Expr, outputs: Sequence[Expression]) -> SortKey:
        for place, output in enumerate(outputs):
            if output == key.expression:
                return replace(key, expression=Column(place, self.written[place].name, output.type))
        raise self.rows.place(item).refuse(
            TypeMismatch,
            "DISTINCT leaves nothing of this to order by",
            hint="order by a selected column, or select this one too",
        )

    def _check_size(
        self, grouping: Grouping | None, parts: Sequence[Condition], order: Sequence[SortKey]
    ) -> None:
        """Raise LimitExceeded for expressions, those of subqueries too, that are too many or one too high."""
        over = [each for stage in self.over.stages() for each in stage.expressions()]
        check_size(
            self.relation,
            grouping,
            parts,
            [key.expression for key in order] + over,
            self.rows.place(self.tree),
            self.env,
        )

    @property
    def _is_correlated(self) -> bool:
        """Whether this is a subquery that uses columns of the query around it."""
        return self.correlation is not None and self.correlation.is_used


def _named(expression: Expression, names: Sequence[str]) -> Expression:
    """With these names for the columns of groups; none: as it is."""
    if not names:
        return expression

    def name(node: Expression) -> Expression:
        if isinstance(node, Column) and node.index >= 0 and node.name != names[node.index]:
            return Column(node.index, names[node.index], node.type)
        return node

    return transform(expression, name)


def _rewritten(order: Sequence[SortKey]) -> tuple[SortKey, ...]:
    return tuple(replace(key, expression=rewrite(key.expression)) for key in order)
