"""Modules, functions and classes stay of a size that is read at one sitting; what is larger is named here.

Counted are lines of a module and of a function (from its ``def`` to its end), parameters of a function (but
``self`` and ``cls``), attributes of a class (fields, and what methods assign to ``self``) and its methods.

    python -m tests.sizes_test        prints what is larger, as the table below has it
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.source_modules import PACKAGES, modules

MOST = {"module lines": 500, "function lines": 60, "parameters": 8, "attributes": 12, "methods": 30}

LARGER: dict[str, dict[str, int]] = {
    "module lines": {
        "broker.base.settings": 617,
        "tureen.client": 567,
        "tureen.errors": 772,
    },
    "function lines": {
        "engine.kernels.bitmaps.intersect": 70,
        "engine.kernels.joins.combine": 176,
        "engine.kernels.joins.combine_two": 106,
        "topics.scan.scan": 75,
    },
    "parameters": {
        "broker.demo.command.demo": 9,
        "engine.kernels.bitmaps.intersect": 10,
        "engine.kernels.cells.double_variances": 9,
        "engine.kernels.cells.fold": 13,
        "engine.kernels.chunks.pairs": 9,
        "engine.kernels.covers.cut_out": 9,
        "engine.kernels.multisets.distinct": 13,
        "engine.kernels.multisets.least": 11,
        "engine.kernels.queues.fold": 11,
        "engine.kernels.set_pairs._happen": 10,
        "engine.kernels.set_pairs.fold": 9,
        "engine.kernels.sketches._summarise": 10,
        "engine.kernels.sketches._summarise_five": 9,
        "engine.kernels.sketches.summarise": 10,
        "engine.kernels.sketches.summarise_hashes": 10,
        "engine.kernels.strings.number": 9,
        "engine.kernels.top_values.offer": 10,
        "engine.kernels.fingerprints.number_copies": 9,
    },
    "attributes": {
        "benchmarks.open_loop._Run": 13,
        "broker.base.counts.Counts": 18,
        "broker.base.settings.Settings": 114,
        "broker.demo.audience.Progress": 13,
        "broker.observe.query_list.columns.Columns": 25,
        "engine.kernels.ranked.Runs": 13,
        "engine.model.answer.QueryInfo": 14,
        "engine.model.approximation.Approximation": 13,
        "engine.model.limits.Limits": 24,
        "engine.model.persistence.SourceState": 16,
        "engine.model.source.Stream": 14,
        "engine.model.step.StepResult": 13,
        "engine.promising.group.GroupCounts": 15,
        "engine.queries.explain.Plan": 22,
        "engine.queries.footprint.Footprint": 13,
        "engine.queries.plan_inputs.PlanInputs": 15,
        "engine.queries.plan_preference.PlanPreference": 17,
        "engine.queries.source_set.SourceSet": 13,
        "engine.sources.source.Source": 20,
        "engine.sources.source_view.SourceView": 13,
        "spark_jobs.sources.settings.SourcesSettings": 17,
        "tureen.approximation.Approximation": 22,
        "tureen.builder.Select": 15,
        "tureen.calls.ChangedOptions": 13,
        "tureen.snapshot.Snapshot": 16,
    },
    "methods": {
        "storage.store.Store": 38,
        "tureen.async_client.AsyncClient": 41,
        "tureen.builder.Select": 34,
        "tureen.client.Client": 41,
    },
}
"""What is larger, and how large it is. A number here is lowered when it falls, and never raised."""

BETTER_LARGE: dict[str, str] = {
    "broker.base.counts.Counts": "one field a figure that is told",
    "broker.base.settings": "the settings, one field each",
    "broker.base.settings.Settings": "one field a setting, checked together",
    "broker.demo.command.demo": "one parameter an option of the command line",
    "broker.observe.query_list.columns.Columns": "one attribute a column, all with the same rows",
    "engine.kernels.bitmaps.intersect": "arrays that a step would cut are counted: one group took 70% longer",
    "engine.kernels.joins.combine": "one loop for all levels: each goes on where it was left",
    "engine.kernels.joins.combine_two": "making, cutting and writing a list move the same four numbers",
    "engine.model.limits.Limits": "one field a limit",
    "engine.queries.source_set.SourceSet": "one field for each thing that is kept of its queries",
    "engine.sources.source.Source": "one field for each part of a source, and what its statement says",
    "storage.store.Store": "one method for each kind of state that an engine puts, drops or reads",
    "topics.scan.scan": "one pass over bytes: with a step for an object it took 8 to 14% longer",
    "tureen.approximation.Approximation": "one field for each that an answer has of a tag",
    "tureen.async_client.AsyncClient": "one method a request",
    "tureen.builder.Select": "one method a clause",
    "tureen.calls.ChangedOptions": "one field an option, as the request has them",
    "tureen.client": "the client, one method a request",
    "tureen.client.Client": "one method a request",
    "tureen.errors": "one list, a class an error, so that a code is found at once",
    **dict.fromkeys(
        (
            "broker.demo.audience.Progress",
            "engine.kernels.ranked.Runs",
            "engine.model.answer.QueryInfo",
            "engine.model.approximation.Approximation",
            "engine.model.persistence.SourceState",
            "engine.model.source.Stream",
            "engine.model.step.StepResult",
            "engine.promising.group.GroupCounts",
            "engine.queries.explain.Plan",
            "engine.queries.footprint.Footprint",
            "engine.queries.plan_inputs.PlanInputs",
            "engine.queries.plan_preference.PlanPreference",
            "engine.sources.source_view.SourceView",
            "spark_jobs.sources.settings.SourcesSettings",
            "tureen.snapshot.Snapshot",
        ),
        "a record: each field is one of what is told or stored, and whoever has it wants all",
    ),
    **dict.fromkeys(
        (
            "engine.kernels.cells.double_variances",
            "engine.kernels.cells.fold",
            "engine.kernels.chunks.pairs",
            "engine.kernels.covers.cut_out",
            "engine.kernels.multisets.distinct",
            "engine.kernels.multisets.least",
            "engine.kernels.queues.fold",
            "engine.kernels.set_pairs._happen",
            "engine.kernels.set_pairs.fold",
            "engine.kernels.sketches._summarise",
            "engine.kernels.sketches._summarise_five",
            "engine.kernels.sketches.summarise",
            "engine.kernels.sketches.summarise_hashes",
            "engine.kernels.strings.number",
            "engine.kernels.top_values.offer",
            "engine.kernels.fingerprints.number_copies",
        ),
        "compiled: it takes the arrays of one structure and of one batch by name",
    ),
}
"""Those of them that stay so, and why. Of a record its docstring says what it tells; of the others a comment
where they stand says why.
"""


def sizes() -> Iterator[tuple[str, str, int]]:
    """Yields what is counted, the name of what it is counted of, and how much."""
    for name, path in modules(PACKAGES).items():
        text = path.read_text(encoding="utf-8")
        yield "module lines", name, text.count("\n")
        yield from _within(name, ast.parse(text))


def _within(name: str, parent: ast.AST) -> Iterator[tuple[str, str, int]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            own = f"{name}.{node.name}"
            yield from _of_class(own, node) if isinstance(node, ast.ClassDef) else _of_function(own, node)
            yield from _within(own, node)
        else:
            yield from _within(name, node)


def _of_function(
    name: str, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[tuple[str, str, int]]:
    assert function.end_lineno is not None
    yield "function lines", name, function.end_lineno - function.lineno + 1
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    yield "parameters", name, len([one for one in names if one not in ("self", "cls")])


def _of_class(name: str, class_: ast.ClassDef) -> Iterator[tuple[str, str, int]]:
    methods = [one for one in class_.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    yield "methods", name, len({one.name for one in methods})
    fields = {
        one.target.id
        for one in class_.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and not ast.unparse(one.annotation).startswith("ClassVar")
    }
    assigned = {
        node.attr
        for method in methods
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    yield "attributes", name, len(fields | assigned)


def larger() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {kind: {} for kind in MOST}
    for kind, name, size in sizes():
        if size > MOST[kind]:
            found[kind][name] = max(size, found[kind].get(name, 0))
    return found


@pytest.mark.parametrize("kind", MOST)
def test_nothing_grows_beyond_what_is_read_at_one_sitting(kind: str) -> None:
    found, known = larger()[kind], LARGER[kind]
    grown = {name: size for name, size in found.items() if size > known.get(name, MOST[kind])}
    assert not grown, f"more than {MOST[kind]} {kind}, or more than before: make it smaller, or several of it"
    fallen = {name: found.get(name, 0) for name, size in known.items() if found.get(name, 0) < size}
    assert not fallen, "lower these numbers in the table"


def test_what_stays_large_is_large() -> None:
    known = {name for of in LARGER.values() for name in of}
    assert not BETTER_LARGE.keys() - known, "these are no longer large: take them out of the table"


def main() -> None:
    for kind, of in larger().items():
        print(f'    "{kind}": {{')
        for name, size in sorted(of.items()):
            print(f'        "{name}": {size},')
        print("    },")


if __name__ == "__main__":
    main()
