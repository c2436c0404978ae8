"""What a shard is doing, in a clause, for whoever is told that it has given no sign of life.

Anybody may read it at ``/readycheck``: it names queries by their public ids and holds no text of theirs.
"""

from __future__ import annotations

from engine.model.step import (
    AlterSummary,
    Backfill,
    Body,
    CreateSummary,
    DropSource,
    DropSummary,
    Heartbeat,
    Records,
    Register,
    Rejoin,
    SetApart,
    Unregister,
)

TRANSACTION = "it waits for Kafka to take a transaction"
SAVING = "it writes its store"
ANSWERING = "it answers a question of a request"
REGISTERS = "it registers"
PREPARES = "it prepares"
NAMED_MAX = 3
"""Most queries of one step that are named."""


def doing(body: Body) -> str:
    """What a shard does while it makes a step."""
    match body:
        case Records() | Backfill() | Heartbeat():
            return f"it makes a step of {body.source}"
        case Register(registrations=registrations):
            return f"{REGISTERS} {_named([one.query_id for one in registrations])}"
        case Unregister(query_ids=query_ids):
            return f"it removes {_named(query_ids)}"
        case CreateSummary(definition=definition):
            return f"it makes summary {definition.name}"
        case AlterSummary(name=name) | DropSummary(name=name):
            return f"it changes summary {name}"
        case DropSource(source=source):
            return f"it drops {source}"
        case SetApart(query_ids=query_ids):
            return f"it sets {_named(query_ids)} apart"
        case Rejoin(query_ids=query_ids):
            return f"it has {_named(query_ids)} rejoin"
        case _:
            return f"it makes a step ({type(body).__name__})"


def preparing(query_ids: list[str]) -> str:
    """What a shard does while it makes what queries need before they come, change or go."""
    return f"{PREPARES} {_named(query_ids)}"


def is_of_registrations(clause: str) -> bool:
    """Whether a shard that did this was at the work of registrations; also where it is not known."""
    return not clause or clause.startswith((REGISTERS, PREPARES))


def _named(query_ids: list[str] | tuple[str, ...]) -> str:
    noun = "query" if len(query_ids) == 1 else "queries"
    more = f" and {len(query_ids) - NAMED_MAX:,} more" if len(query_ids) > NAMED_MAX else ""
    return f"{noun} {', '.join(query_ids[:NAMED_MAX])}{more}"
