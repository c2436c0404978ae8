"""``tureen explain``: the plan of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tureen import command_options, console, plans
from tureen.errors import QueryError
from tureen.statements import is_select

if TYPE_CHECKING:
    from tureen.client import Client


@click.command()
@click.argument("subject", metavar="HANDLE|ID|NAME|SELECT")
@click.option("--analyze", is_flag=True, help="Evaluate it once, and show the measured rows and times.")
@click.option(
    "--verbose",
    is_flag=True,
    help="Also show update patterns (edge) and shared predicates; with --analyze, rows in each module.",
)
@click.option(
    "--proposals", is_flag=True, help="Show texts that use fewer resources instead, and what each would cost."
)
@command_options.broker_options
def explain(
    subject: str, analyze: bool, verbose: bool, proposals: bool, broker: command_options.Broker
) -> None:
    """Show the plan of a registered query, or of a SELECT.

    The plan has the operators with their windows and predicates, estimated rows and times, and how the answer
    is maintained and why, and the operators that its changes come from while it is followed. --json always
    prints all of it.
    """
    with broker.client() as client:
        if proposals:
            if is_select(subject):
                found = _of_select(client, console.about(subject), "EXPLAIN ")["proposals"]
            else:
                found = client.proposals(subject)
            if broker.as_json:
                console.show_json({"proposals": found})
            else:
                show_proposals(found)
            return
        if is_select(subject):
            before = "EXPLAIN ANALYZE " if analyze else "EXPLAIN "
            plan = _of_select(client, console.about(subject), before)["plan"]
        else:
            plan = client.plan(subject, analyze=analyze)
    if broker.as_json:
        console.show_json(dict(plan))
    else:
        show(plan, verbose=verbose)


def _of_select(client: Client, text: str, before: str) -> Mapping[str, Any]:
    """Its plan and proposals. Columns of a refusal are those of the text, without what stands before it."""
    try:
        found: Mapping[str, Any] = client.execute(before + text).facts
    except QueryError as error:
        if error.line == 1 and error.column is not None:
            error.column -= len(before)
        raise
    return found


def show_proposals(found: Sequence[Mapping[str, Any]]) -> None:
    """A table, and the texts below it."""
    out = console.out()
    if not found:
        out.print("no other text is proposed", style="dim")
        return
    numeric = [name not in plans.PROPOSAL_TEXTS for name in plans.PROPOSAL_COLUMNS]
    console.show_table(plans.PROPOSAL_COLUMNS, plans.proposal_rows(found), numeric)
    for number, one in enumerate(found, 1):
        out.print(f"{number}: {one['sql']}", markup=False, soft_wrap=True)


def _show_costs(plan: Mapping[str, Any]) -> None:
    """What operators are estimated to cost, and what other plans would."""
    found = plans.costs(plan)
    if not found:
        return
    counted = plans.COUNTED_COLUMNS if plans.is_analyzed(plan) else ()
    names = plans.COST_COLUMNS + counted
    numeric = [place > 1 for place in range(len(names))]
    console.show_table(names, found, numeric, whole="operator")
    console.show_table(plans.WAY_COLUMNS, plans.ways(plan), [place > 0 for place in range(5)])


def show(plan: Mapping[str, Any], *, verbose: bool = False) -> None:
    """The plan in lines and a table."""
    out = console.out()
    for place, line in enumerate(plans.headline(plan)):
        out.print(line, style="bold" if place == 0 else "dim", markup=False, soft_wrap=True)
    for line in plans.preference(plan):
        out.print(line, style="dim", markup=False, soft_wrap=True)
    names = plans.columns(plan, verbose=verbose)
    numeric = [name not in ("operator", "detail", "edge") for name in names]
    console.show_table(names, plans.rows(plan, verbose=verbose), numeric)
    out.print(plans.graph_headline(plan), style="dim", markup=False, soft_wrap=True)
    numeric = [name not in ("operator", "detail", "edge") for name in plans.GRAPH_COLUMNS]
    if found := plans.graph(plan):
        console.show_table(plans.GRAPH_COLUMNS, found, numeric)
    for line in plans.strategy(plan):
        out.print(line, style="dim", markup=False, soft_wrap=True)
    if not verbose:
        return
    _show_costs(plan)
    for line in (*plans.views(plan), *plans.predicates(plan)):
        out.print(line, style="dim", markup=False, soft_wrap=True)
    if plans.is_analyzed(plan) and (found := plans.modules(plan)):
        console.show_table(
            plans.MODULE_COLUMNS, found, [place > 0 for place in range(len(plans.MODULE_COLUMNS))]
        )
