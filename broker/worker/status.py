"""What the node tells of itself: readiness with reasons, sources, and the status page's facts."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from broker.settings import Settings
from broker.worker.metrics import Metrics
from broker.worker.node import Node
from engine.model.answer import SourceInfo

CONTROL_SILENT_S = 15.0


def readiness(node: Node) -> dict[str, Any]:
    """``{ready, reasons, degraded}``: reasons stop writes or progress; degraded concerns single streams."""
    reasons: list[dict[str, Any]] = []
    if not node.started:
        reasons.append({"code": "starting", "message": "shards are coming back from store and journal"})
    elif not node.reconciled:
        reasons.append({"code": "registry", "message": "the control process has not told the registry yet"})
    elif time.monotonic() - node.control_seen_s > CONTROL_SILENT_S:
        reasons.append(
            {"code": "control", "message": "the control process is away; registrations wait, answers do not"}
        )
    degraded: list[dict[str, Any]] = []
    for shard in list(node.shards.values()):
        trouble = shard.trouble
        if trouble is not None:
            reasons.append({"shard": shard.number} | trouble)
        for name, error in list(shard.stream_errors.items()):
            degraded.append({"stream": name} | error)
    return {"ready": not reasons, "reasons": reasons, "degraded": degraded}


def source_list(node: Node) -> list[dict[str, Any]]:
    """Every stream as lists show it."""
    readers = Counter(e.source for e in node.queries.values() if e.shard is not None)
    listed = []
    infos: dict[str, SourceInfo] = {}
    for shard in list(node.shards.values()):
        infos |= {info.name: info for info in shard.view().sources()}
    for name, entry in sorted(node.sources.items()):
        shard = node.shards[entry.shard]
        info = infos.get(name)
        error = shard.stream_errors.get(name)
        listed.append(
            {
                "name": name,
                "topic": entry.stream.topic,
                "sql": entry.sql,
                "time": "event" if entry.stream.event_time else "arrival",
                "state": "ERROR" if error else "RUNNING",
                "error": error,
                "shard": entry.shard,
                "queries": readers.get(name, 0),
                "now_ms": info.now_ms if info else None,
                "retained_from_ms": info.retained_from_ms if info else None,
                "rows": info.rows if info else 0,
                "pending": info.pending if info else 0,
                "late": info.late if info else 0,
                "rejected": info.rejected if info else 0,
                "dead_letters": shard.counts.dead_letters.get(name, 0),
                "next_offsets": info.next_offsets if info else {},
                "lagging": sorted(shard.lagging(name)),
                "records": shard.counts.records.get(name, 0),
                "entered": shard.counts.entered.get(name, 0),
                "columns": [
                    {"name": field.name, "type": str(field.type), "nullable": field.nullable}
                    for field in entry.stream.schema
                ],
            }
        )
    return listed


def status(node: Node, settings: Settings, metrics: Metrics) -> dict[str, Any]:
    """The facts behind ``tureen status``."""
    states = Counter(entry.state for entry in node.queries.values())
    sources = source_list(node)
    return {
        "service_id": settings.service_id,
        "instance": node.instance,
        "readiness": readiness(node),
        "uptime_s": round(time.monotonic() - node.began_s, 1),
        "kafka": node.kafka.get("bootstrap.servers"),
        "data_dir": str(settings.data_dir),
        "queries": {state: states.get(state, 0) for state in ("RUNNING", "PENDING", "ERROR")},
        "rates": metrics.rates(node),
        "sources": sources,
        "shards": [
            {
                "shard": shard.number,
                "state": shard.state,
                "trouble": shard.trouble,
                "position": str(shard.view().position),
                "saved_position": str(shard.saved_position) if shard.saved_position else None,
                "epoch": shard.epoch,
                "queries": sum(1 for e in list(node.queries.values()) if e.shard == shard.number),
                "sources": sorted(n for n, s in node.sources.items() if s.shard == shard.number),
                "transactions": shard.counts.transactions,
                "steps": shard.counts.steps,
            }
            for shard in sorted(node.shards.values(), key=lambda shard: shard.number)
        ],
    }
