"""What control and worker say to each other over the unix socket: shapes and paths, nothing else.

    GET  /internal/hello             {instance, reconciled, changed: [id]}
    POST /internal/alive             {pid, told}: the control process is there, and has told the whole
                                     registry to the worker's life ``told``
    POST /internal/commands          {commands: [Command]} -> {outcomes: [Outcome]}, one each, in order
    POST /internal/reconcile         {queries: [id], sources: [name]}: whatever else the worker has goes
    POST /internal/prove             every shard journals a step that changes nothing: fenced ones find out
    POST /internal/snapshot          SnapshotRequest -> the answer's bytes, or an error with its HTTP status
    POST /internal/reply-topic       {name}: exists after this
    GET  /internal/ready             200 or 503 {reasons}

Every call carries the node's secret in the header :data:`SECRET_HEADER`; another is answered with 401.

Every command is idempotent: saying it again changes nothing. ``instance`` names one life of the worker, so
that the control sees when everything has to be said again; ``changed`` the queries whose state is another
than the last outcome told, and that are to be said again.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

SECRET_HEADER = "Tureen-Internal-Secret"

State = Literal["RUNNING", "PAUSED", "PENDING", "ERROR", "GONE"]


class Outcome(TypedDict):
    """What became of a command. ``position``: after which step, where one was made or is known.
    ``output``: of a query that emits its changes, where to and how. ``approximation``: the tags of a query
    that stands, none where its answer is exact; left out where they are those of before. ``refused``: another
    text for a query, as ``error`` says; it runs as before. ``raised``: of a heartbeat, the partitions whose
    watermark rose by it.
    """

    state: State
    error: NotRequired[dict[str, Any] | None]
    position: NotRequired[str | None]
    output: NotRequired[dict[str, Any] | None]
    approximation: NotRequired[list[dict[str, Any]]]
    refused: NotRequired[bool]
    raised: NotRequired[list[int]]
