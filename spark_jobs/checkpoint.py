"""Whose a checkpoint directory is: a small file beside Spark's own, that says which job made it and how.

Spark goes on from any directory that it finds, with whatever query it is given; offsets of one query taken
for those of another lose or double rows. So the first run writes ``tureen.json``: the version of this file,
the job, the settings on which the meaning of its offsets rests, and a random ``id``, by which the job names
what it keeps elsewhere. Later runs must agree.

The directory may be on any file system that Spark writes. Object stores and disks alike have no rename that
fails where the name is taken, so two first runs at once are kept apart by what all of them have: a file that
was written is in every list made after. Each writes a bid, ``.tureen.json.<id>``, and lists. Who sees no bid
but its own renames it to ``tureen.json``; two can't, for the later of the two bids was written before its
owner listed. Where there are several the one with the least name waits for the others to withdraw.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.errors import CheckpointMismatch
from spark_jobs.failures import writing_files
from spark_jobs.files import DirectoryFiles

VERSION = 1
NAME = "tureen.json"
BID = f".{NAME}."
BIDS_S = 10.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Identity:
    """A job, and those of its settings that may not change under a checkpoint."""

    job: str
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A directory that is this job's. ``fresh``: nothing was done under it yet."""

    path: str
    id: str
    fresh: bool


def claim(session: SparkSession, path: str, identity: Identity) -> Checkpoint:
    """The directory, made if it is missing. Raises CheckpointMismatch, PathNotWritable."""
    with writing_files(path):
        files = DirectoryFiles(session, path)
        if not files.exists(NAME):
            _take(files, path, session.version, identity)
        found = _parsed(path, files.read(NAME))
        fresh = not files.exists("offsets")
    _agree(path, found, identity)
    return Checkpoint(path, found["id"], fresh)


def _agree(path: str, found: Mapping[str, Any], identity: Identity) -> None:
    another = "name another --checkpoint"
    if found.get("version") != VERSION:
        reason = f"is of version {found.get('version')} of {NAME}, and this is version {VERSION}"
        raise CheckpointMismatch(
            path, reason, hint=f"run the version of Tureen that made it, or {another} and begin anew"
        )
    if found.get("job") != identity.job:
        raise CheckpointMismatch(path, f"is of the job {found.get('job')}", hint=another)
    before, now = found.get("settings", {}), json.loads(json.dumps(dict(identity.fixed)))
    changed = [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if changed:
        hint = f"run with the settings it was made with, or {another} and begin anew"
        raise CheckpointMismatch(path, f"was made with other settings: {'; '.join(changed)}", hint=hint)


def _take(files: DirectoryFiles, path: str, spark: str, identity: Identity) -> None:
    """Make the directory ours, unless another run is first. Raises CheckpointMismatch."""
    if any(not name.startswith(BID) for name in files.names()):
        if files.exists(NAME):
            return
        raise CheckpointMismatch(
            path, f"has files but no {NAME}: it is not a checkpoint of Tureen", hint="name an empty directory"
        )
    files.make()
    own = uuid.uuid4().hex
    bid = f"{BID}{own}"
    files.put(bid, _told(own, spark, identity))
    bidding = True
    for _ in range(round(BIDS_S / POLL_S)):
        names = files.names()
        others = [name for name in names if name.startswith(BID) and name != bid]
        if NAME in names:
            break
        if bidding and not others:
            files.rename(bid, NAME)
            return
        if bidding and min(others) < bid:
            files.delete(bid)
            bidding = False
        time.sleep(POLL_S)
    if bidding:
        files.delete(bid)
    if not files.exists(NAME):
        raise CheckpointMismatch(
            path,
            "is being taken by another run, or by one that died then",
            hint=f"run it again; if no other run is active, delete {path.rstrip('/')}/{BID}* first",
        )


def _told(own: str, spark: str, identity: Identity) -> str:
    told = {
        "version": VERSION,
        "id": own,
        "job": identity.job,
        "settings": dict(identity.fixed),
        "spark": spark,
    }
    return json.dumps(told, indent=1)


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("id"), str):
            raise ValueError(text)
    except ValueError as error:
        raise CheckpointMismatch(
            path, f"has a damaged {NAME}", hint="start again with another --checkpoint"
        ) from error
    return found
