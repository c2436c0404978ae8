"""Whose a checkpoint directory is: a small file beside Spark's own, that says which job made it and how.

Spark goes on from any directory that it finds, with whatever query it is given; offsets of one query taken
for those of another lose or double rows. So the first run writes ``tureen.json``: the version of this file,
the job, the settings on which the meaning of its offsets rests, and a random ``id``, by which the job names
what it keeps elsewhere. Later runs must agree. The file is written whole under another name and renamed.

The directory may be on any file system that Spark writes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.errors import CheckpointMismatch
from spark_jobs.failures import writing_files
from spark_jobs.files import Files

VERSION = 1
NAME = "tureen.json"


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
        files = Files(session, path)
        if not files.exists(NAME):
            if files.names():
                raise CheckpointMismatch(
                    path, f"holds files, but no {NAME}: it is not ours", hint="name an empty directory"
                )
            files.make()
            files.create(NAME, _told(session, identity))  # or another run was first
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


def _told(session: SparkSession, identity: Identity) -> str:
    told = {
        "version": VERSION,
        "id": uuid.uuid4().hex,
        "job": identity.job,
        "settings": dict(identity.fixed),
        "spark": session.version,
    }
    return json.dumps(told, indent=1)


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("id"), str):
            raise ValueError(text)
    except ValueError as error:
        raise CheckpointMismatch(
            path, f"has a damaged {NAME}", hint="name another --checkpoint and begin anew"
        ) from error
    return found
