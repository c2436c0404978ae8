"""Queries and streams as HTTP tells of them; handles are never part of it."""

from __future__ import annotations

import contextlib
from typing import Any

from broker.base import options as query_options
from broker.base.entries import QueryEntry
from broker.http.errors import QueryNotRunning
from broker.http.formats import catching_up_dicts, lost_facts, tag_dicts
from broker.node.node import Node
from broker.shard.shard import Shard
from engine.model.maintenance import QueryOptions
from engine.model.tolerance import WEIGHT_DEFAULT
from tureen.errors import BeingPrepared, BrokerUnavailable, OptionRefused, UnknownQuery


def standing(node: Node, name: str) -> QueryEntry:
    """What is known of a query. Raises UnknownQuery; BrokerUnavailable while that cannot be told."""
    entry = node.directory.found(name)
    if entry is None:
        if not node.life.reconciled:
            raise BrokerUnavailable("the registry is still being read", hint="try again in a second")
        raise UnknownQuery()
    return entry


def staying(node: Node, name: str) -> QueryEntry:
    """As :func:`standing`, of a query that may be changed. Raises QueryNotRunning too, of one that goes."""
    entry = standing(node, name)
    if entry.is_leaving:
        raise QueryNotRunning(entry.state, entry.error)
    return entry


def listed(node: Node, name: str, entry: QueryEntry) -> dict[str, Any]:
    """One line of a list. maintenance: the mode of now; of a query that does not stand, what it asks for.
    notice: where its answer is not kept as asked, why.
    strategy: that of now where its changes are followed, else what it asks for. weight, tolerance: of its
    options, else of its text; the text of one that does not stand is not known.
    """
    told: dict[str, Any] = {
        "query_id": name,
        "name": entry.query_name,
        "sql": entry.sql,
        "state": entry.state,
        "sources": list(entry.sources),
        "error": entry.error,
        "maintenance": entry.options.get("maintenance", "auto"),
        "notice": None,
        "strategy": entry.options.get("strategy", "auto"),
        "paused": entry.state == "PAUSED",
        "weight": WEIGHT_DEFAULT,
        "tolerance": {},
        "approximation": [],
        "output": entry.output,
    }
    progress = _progress(node, name, entry)
    if progress is None and entry.shard is not None and not entry.waits:
        progress = node.shards[entry.shard].preparations.apart.progress.get(name)
    if progress is not None:
        told["error"] = BeingPrepared(progress).as_dict()
    if entry.parameters is not None:
        told["parameters"] = entry.parameters
    with contextlib.suppress(OptionRefused):  # a refused registration may have any
        told["paused"] = query_options.is_paused(entry.options)
        told["weight"] = query_options.weight_of(entry.options) or WEIGHT_DEFAULT
        told["tolerance"] = QueryOptions.of(query_options.as_text(entry.options)).tolerance.named()
    if entry.shard is not None:
        with contextlib.suppress(UnknownQuery):  # it is just being replaced
            info = node.shards[entry.shard].view().query(name)
            told |= {
                "maintenance": info.maintenance,
                "notice": None if info.put_off is None else info.put_off.notice,
                "strategy": info.strategy,
                "paused": info.paused,
                "weight": info.weight,
                "tolerance": info.tolerance.named(),
                "approximation": tag_dicts(info.approximation),
            }
        if entry.output is not None:
            told["output"] = entry.output | {"waiting": node.shards[entry.shard].waiting(name)}
    return told


def _progress(node: Node, name: str, entry: QueryEntry) -> float | None:
    """How far a query is that is prepared; None: it is not."""
    number = entry.tried if entry.shard is None else entry.shard
    if number is None or (entry.state != "PENDING" and not entry.waits):
        return None
    shard = node.shards.find(number)
    return None if shard is None else shard.preparations.progress.get(name)


def is_swapped_out(shard: Shard, name: str) -> bool:
    """Whether only the store has a query of a shard, which stands."""
    return bool(shard.upkeep.swapper.count) and name not in shard.view().standing


def described(node: Node, name: str) -> dict[str, Any]:
    """One query with all that is known of it. Raises UnknownQuery, BrokerUnavailable."""
    entry = standing(node, name)
    told = listed(node, name, entry) | {
        "options": query_options.shown(entry.options),
        "uses": list(entry.uses),
    }
    unreachable = node.allocation.unreachable.get(name)
    told["swapped_out"] = entry.shard is not None and is_swapped_out(node.shards[entry.shard], name)
    told["unreachable"] = None if unreachable is None else unreachable.as_dict()
    if entry.shard is not None:
        view = node.shards[entry.shard].view()
        with contextlib.suppress(UnknownQuery):
            info = view.query(name)
            told |= {
                "born": str(info.born),
                "predicate_errors": info.predicate_errors,
                "position": str(view.position),
                "catching_up": catching_up_dicts(view.catching_up(info.sources)),
                **lost_facts(view.lost(name)),
            }
    return told
