"""What the node tells of itself: readiness with reasons, sources, and the status page's facts."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import Any, get_args

from broker.base.entries import WaitingView
from broker.base.settings import Settings
from broker.memory.levels import Level
from broker.node.materialized import materialized_by
from broker.node.node import Node
from broker.observe.metrics import Metrics
from broker.runtime.functions import facts
from broker.shard.shard import Shard
from broker.shard.stalls import Stall
from engine.dataflow.strategy_state import StrategyState
from engine.language.query import Describe, Query
from engine.model.answer import SourceInfo
from engine.model.constraint import constraint_as_dict, text_of
from engine.model.maintenance import Strategy
from engine.model.paths import path_text
from engine.model.source import SourceName
from engine.queries.definitions import key_of, kind_of
from topics.producer import CommitUnknown, TransactionAborted
from tureen.errors import KafkaUnavailable, TureenError

SILENT_S = 3.0
"""A shard or the control process that gives no sign of life for so long is told to hang."""
PAUSED_MAX = 100
"""Queries that the broker has paused are named, so many of them."""
BROKEN_OFF = (CommitUnknown.code, TransactionAborted.code)


def readiness(node: Node) -> dict[str, Any]:
    """``{ready, reasons, degraded}``: reasons stop writes or progress; degraded concerns single streams."""
    reasons: list[dict[str, Any]] = []
    if not node.life.started:
        reasons.append({"code": "starting", "message": "shards are recovering from store and journal"})
    elif not node.life.reconciled:
        reasons.append({"code": "registry", "message": "the control process has not sent the registry yet"})
    elif (what := node.life.control.missing(SILENT_S)) is not None:
        told = f"{what}; registrations wait, answers are available"
        reasons.append({"code": "control", "message": told})
    degraded = node.setup.outputs.degraded()
    reasons += _shard_troubles(node)
    if node.kafka_watch.stall is not None and all(one["code"] != KafkaUnavailable.code for one in reasons):
        reasons.append(node.kafka_watch.stall)
    for shard in node.shards:
        replicas = node.hosting.replicas_on(shard.number)
        for name, error in list(shard.stream_errors.items()):
            if name not in replicas:
                degraded.append({"stream": name} | error)
    degraded += _forwarded_lost(node)
    degraded += _archive_troubles(node)
    degraded += _resting_functions(node)
    _add_memory(node, reasons, degraded)
    return {"ready": not reasons, "reasons": reasons, "degraded": degraded}


def _shard_troubles(node: Node) -> list[dict[str, Any]]:
    """What shards wait for, each reason once with the numbers of its ``shards``. While Kafka is away, that is
    the reason of transactions which were broken off, too.
    """
    told_by = ((shard.number, shard.stall or _hang(shard)) for shard in node.shards)
    stalls = {number: stall for number, stall in told_by if stall is not None}
    away = next((one for one in stalls.values() if one["code"] == KafkaUnavailable.code), None)
    found: dict[str, dict[str, Any]] = {}
    for number, stall in sorted(stalls.items()):
        told = away if away is not None and stall["code"] in BROKEN_OFF else stall
        key = told["code"] if told["code"] == KafkaUnavailable.code else f"{told['code']} {told['message']}"
        found.setdefault(key, {**told, "shards": []})["shards"].append(number)
    return list(found.values())


def _hang(shard: Shard) -> Stall | None:
    """That a shard gives no sign of life, where one was due some time ago."""
    silent_s, what = shard.pulse.silence()
    if silent_s < SILENT_S:
        return None
    return {"code": "shard_hangs", "message": f"no sign of life for over {SILENT_S:.0f} s: {what}"}


def _forwarded_lost(node: Node) -> list[dict[str, Any]]:
    """Topics for late rows and dead letters that have refused some since the start, and why."""
    lost: Counter[str] = Counter()
    reasons: dict[str, dict[str, Any]] = {}
    for shard in node.shards:
        lost.update(dict(shard.counts.forwarded_lost))
        reasons |= dict(shard.counts.forwarding_refused)
    return [{"topic": name, "records": count} | reasons[name] for name, count in sorted(lost.items())]


def _add_memory(node: Node, reasons: list[dict[str, Any]], degraded: list[dict[str, Any]]) -> None:
    """What is not done since memory is short: it stops progress, or is degraded."""
    memory = node.setup.memory
    level = memory.look()
    if level >= Level.HOLD:
        what = "no answers are given, and no records read" if level >= Level.SHED else "no records are read"
        reasons.append(memory.error(f"{what} until there is room").as_dict())
    elif level >= Level.REFUSE:
        degraded.append(memory.error("no queries are registered, no streams created").as_dict())
    for name in sorted(node.directory.paused_by_broker)[:PAUSED_MAX]:
        error = node.directory.queries[name].error or {}
        degraded.append({"query_id": name} | error)


def _resting_functions(node: Node) -> list[dict[str, Any]]:
    """Users' functions that are not called for a while."""
    told = "it lost too much time with calls that hang or end its process: its rows are errors for a while"
    return [
        {"function": one["name"], "code": "function_rests", "message": told}
        for one in facts(node.setup.engines.functions)
        if one["rests"]
    ]


def _archive_troubles(node: Node) -> list[dict[str, Any]]:
    """Streams that history is wanted for and cannot be had."""
    found: list[dict[str, Any]] = []
    for name in node.directory.sources:
        told = _archived(node, name)
        if told is None or told["backfill"] is None or told["backfill"]["state"] == "complete":
            continue
        error = told["backfill"]["error"] or told["lost_history"]
        if error is not None:
            found.append({"stream": name} | error)
    return found


def _archived(node: Node, name: str) -> dict[str, Any] | None:
    """What is archived of a stream and how its history comes; None without an archive, and of tables."""
    entry = node.directory.sources[name]
    if node.setup.archive is None or entry.stream.is_table:
        return None
    told = [  # a stream may be a replica of other shards than its home
        facts
        for shard in node.shards
        if shard.ingestion.backfills is not None and (facts := shard.ingestion.backfills.facts(name))
    ]
    backfill = None
    if told:
        telling = next((one for one in told if one["state"] != "complete"), told[0])
        backfill = telling | {count: sum(one[count] for one in told) for count in ("rows", "steps")}
    lost = next((shard.lost_history[name] for shard in node.shards if name in shard.lost_history), None)
    return node.setup.archive.stream_facts(name) | {"backfill": backfill, "lost_history": lost}


def source_list(node: Node, only: str | None = None) -> list[dict[str, Any]]:
    """Every stream, table and view as lists show it, by name. only: the one of this name alone."""
    infos: dict[str, SourceInfo] = {}
    for shard in node.shards:
        replicas = node.hosting.replicas_on(shard.number)
        infos |= {info.name: info for info in shard.view().sources() if info.name not in replicas}

    def wanted(name: str) -> bool:
        return only is None or name == only

    listed = [_stream(node, name, infos.get(name)) for name in node.directory.sources if wanted(name)]
    listed += [_view(node, name, infos) for name in node.directory.views if wanted(name)]
    listed += [_waiting(name, view) for name, view in node.directory.waiting.items() if wanted(name)]
    for one in listed:
        one["queries"] = node.directory.readers(one["name"])
    return sorted(listed, key=lambda one: str(one["name"]))


_NOTHING: dict[str, Any] = {
    "topic": None,
    "timestamp": None,
    "shard": None,
    "reads": None,
    "now_ms": None,
    "behind_ms": None,
    "retained_from_ms": None,
    "rows": None,
    "pending": None,
    "late": None,
    "rejected": None,
    "dead_letters": None,
    "counted_from_ms": None,
    "shed": None,
    "unread": None,
    "shedding_share": None,
    "constraints": [],
    "absent_columns": [],
    "archive": None,
    "catching_up": None,
}


def _waiting(name: str, view: WaitingView) -> dict[str, Any]:
    facts = {"name": name, "kind": "view", "sql": view.sql, "state": view.state, "error": view.error}
    return _NOTHING | facts | {"columns": []}


def _stream(node: Node, name: str, info: SourceInfo | None) -> dict[str, Any]:
    entry = node.directory.sources[name]
    shard = node.shards[entry.shard]
    error = shard.stream_errors.get(SourceName(name))
    seen = shard.view().source(SourceName(name))
    return {
        "name": name,
        "kind": entry.stream.kind,
        "key": list(entry.stream.key),
        "topic": entry.stream.topic,
        "sql": entry.sql,
        "time": "event" if entry.stream.event_time else "arrival",
        "timestamp": entry.stream.timestamp_column,
        "state": "ERROR" if error else "RUNNING",
        "error": error,
        "shard": entry.shard,
        "reads": None,
        "now_ms": info.now_ms if info else None,
        "behind_ms": seen.behind_ms if seen else None,
        "retained_from_ms": info.retained_from_ms if info else None,
        "rows": info.rows if info else 0,
        "pending": info.pending if info else 0,
        "late": info.lost.late if info else 0,
        "rejected": info.lost.rejected if info else 0,
        "dead_letters": info.lost.broken if info else 0,
        "counted_from_ms": info.lost.since_ms if info else None,
        "next_offsets": info.next_offsets if info else {},
        "lagging": sorted(shard.lagging(name)),
        "catching_up": next((one.as_dict() for one in shard.view().catching_up((name,))), None),
        "records": shard.counts.records.get(name, 0),
        "entered": shard.counts.entered.get(name, 0),
        "shed": shard.counts.shed.get(name, 0),
        "unread": shard.counts.unread.get(name, 0),
        "shedding_share": shard.ingestion.shedder.shares.get(name, 0.0),
        "archive": _archived(node, name),
        "columns": [
            {"name": field.name, "type": str(field.type), "nullable": field.nullable}
            | ({} if field.path is None else {"path": path_text(field.path)})
            | ({"from_key": True} if field.from_key else {})
            for field in entry.stream.schema
        ],
        "constraints": [
            constraint_as_dict(one)
            | {"text": text_of(one), "violations": broken, "values_forgotten": forgotten}
            for one, broken, forgotten in zip(
                entry.stream.constraints,
                info.violations if info else [0] * len(entry.stream.constraints),
                info.forgotten if info else [0] * len(entry.stream.constraints),
                strict=True,
            )
        ],
        "absent_columns": shard.counts.absent(name, entry.stream.schema),
    }


def _view(node: Node, name: str, infos: dict[str, SourceInfo]) -> dict[str, Any]:
    """A view has no rows of its own; its NOW is that of a query over it."""
    entry = node.directory.views[name]
    quoted = name.replace('"', '""')
    columns: list[dict[str, Any]] = []
    key: list[str] = []
    with contextlib.suppress(TureenError):  # a view that this version refuses is listed all the same
        described = node.directory.parse(f'DESCRIBE "{quoted}"')
        assert isinstance(described, Describe)
        if entry.derived.is_table:
            query = node.directory.parse(entry.derived.sql)
            assert isinstance(query, Query)
            key = list(key_of(query, node.directory.catalogue) or ())
        columns = [{"name": one, "type": str(of), "nullable": True} for one, of in described.columns]
    sources = node.directory.sources
    streams = [one for one in entry.sources if one in sources and not sources[one].stream.is_table]
    nows = [info.now_ms if (info := infos.get(one)) else None for one in streams or entry.sources]
    known = [now_ms for now_ms in nows if now_ms is not None]
    now_ms = None
    if known:
        now_ms = max(known) if not streams else min(known) if len(known) == len(nows) else None
    return _NOTHING | {
        "name": name,
        "kind": kind_of(entry.derived),
        "key": key,
        "materialized_by": materialized_by(node.directory, name),
        "sql": entry.sql,
        "state": "RUNNING",
        "error": None,
        "shard": entry.shard,
        "reads": list(entry.sources),
        "now_ms": now_ms,
        "columns": columns,
    }


def _strategies(node: Node) -> dict[str, Any]:
    """By strategy: how many queries are followed with it, the bytes that their operators keep, and the share
    of the rows of negations that left before their time.
    """
    counted = node.setup.memory.accounts.by_strategy()
    states = {strategy: counted.get(strategy, StrategyState()) for strategy in get_args(Strategy)}
    return {
        strategy: {
            "queries": state.queries,
            "state_bytes": state.nbytes,
            "premature_share": state.premature_share,
        }
        for strategy, state in states.items()
    }


def status(node: Node, settings: Settings, metrics: Metrics) -> dict[str, Any]:
    """The facts behind ``tureen status``."""
    directory = node.directory
    streams = [one for one in source_list(node) if one["topic"] is not None]
    return {
        "service_id": settings.service_id,
        "instance": node.life.instance,
        "readiness": readiness(node),
        "uptime_s": round(time.monotonic() - node.life.began_s, 1),
        "kafka": node.setup.kafka.get("bootstrap.servers"),
        "doors": metrics.doors(),
        "data_dir": str(settings.data_dir),
        "archive": None if node.setup.archive is None else node.setup.archive.facts(),
        "queries": directory.queries.states(),
        "strategies": _strategies(node),
        "memory": node.setup.memory.facts() | {"paused": sorted(directory.paused_by_broker)[:PAUSED_MAX]},
        "allocation": node.allocation.facts(),
        "rates": metrics.rates(node),
        "functions": facts(node.setup.engines.functions),
        "sources": streams,
        "shards": [
            {
                "shard": shard.number,
                "state": shard.state,
                "stall": shard.stall,
                "position": str(shard.view().position),
                "saved_position": str(shard.saved_position) if shard.saved_position else None,
                "epoch": shard.epoch,
                "queries": directory.queries.by_shard[shard.number],
                "swapped_out": shard.upkeep.swapper.count,
                "sources": sorted(n for n, s in directory.sources.items() if s.shard == shard.number),
                "replicas": sorted(node.hosting.replicas_on(shard.number)),
                "transactions": shard.counts.transactions,
                "deltas": sum(list(shard.counts.deltas.values())),
                "changes_waiting": shard.waiting(),
                "steps": shard.counts.steps,
            }
            for shard in sorted(node.shards, key=lambda shard: shard.number)
        ],
    }
