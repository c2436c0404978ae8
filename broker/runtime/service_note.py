"""Which service of which Kafka a data directory belongs to: its state is that of these topics alone.

``service.json`` of the data directory has the service id, Kafka's cluster id, and the ids of the topics from
which the control process reads its tables back. A start refuses a directory of another service, or of topics
that are gone: two registries would be mixed, or the tables would never be read back. A directory without
state belongs to whoever starts on it; one without the note, of a release before, is taken over.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from broker.base.settings import Settings
from broker.runtime import lock
from broker.runtime.topic_admin import changelogs
from topics.admin import Admin
from tureen.errors import StoreMismatch

NAME = "service.json"
STATE = ("control", "shards")
"""The directories that have state of a service."""


@dataclass(frozen=True, slots=True)
class ServiceNote:
    """topics: ids by name."""

    service_id: str
    cluster_id: str
    topics: dict[str, str]


def read(data_dir: Path) -> ServiceNote | None:
    """The note; None where there is none, or none that can be read."""
    try:
        return ServiceNote(**json.loads((data_dir / NAME).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def check_service(data_dir: Path, service_id: str) -> None:
    """Raise StoreMismatch where the directory has state of another service."""
    known = read(data_dir) if _has_state(data_dir) else None
    if known is not None and known.service_id != service_id:
        raise StoreMismatch(
            f"the data directory {data_dir} belongs to the service {known.service_id}, not to {service_id}",
            hint=f"choose another --data-dir, or start it with TUREEN_SERVICE_ID={known.service_id}",
        )


def check_kafka(data_dir: Path, admin: Admin, settings: Settings) -> None:
    """Raise StoreMismatch where the directory has state of topics that this Kafka does not have, be it
    another one or made anew. Before topics are made. Raises KafkaUnavailable.
    """
    if not _has_state(data_dir):
        return
    known = read(data_dir)
    found = _topics(admin, settings)
    gone = next((name for name in changelogs(settings) if name not in found), None)
    if known is not None and known.cluster_id != admin.cluster_id():
        wrong = f"was used with another Kafka (cluster {known.cluster_id}, this one is {admin.cluster_id()})"
    elif gone is not None:
        wrong = f"has state of topics that Kafka does not have any more, as {gone}"
    elif known is not None and known.topics != found:
        wrong = "has state of topics that were deleted and made anew since"
    else:
        return
    moved = " and ".join(str(data_dir / one) for one in STATE)
    raise StoreMismatch(
        f"the data directory {data_dir} {wrong}",
        hint="start it with the Kafka that has these topics, or choose another --data-dir; where they are "
        f"lost, so are the registrations: move {moved} elsewhere, start, create and register again",
    )


def write(data_dir: Path, admin: Admin, settings: Settings) -> None:
    """Note whose the directory is; once topics are made, before there is state. Raises StoreFull,
    KafkaUnavailable.
    """
    note = ServiceNote(settings.service_id, admin.cluster_id(), _topics(admin, settings))
    if note == read(data_dir):
        return
    beside = data_dir / f"{NAME}.tmp"
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(note), file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(data_dir / NAME)
    except OSError as failed:
        raise lock.unusable(data_dir, failed) from None


def _topics(admin: Admin, settings: Settings) -> dict[str, str]:
    found = admin.describe(changelogs(settings))
    return {name: facts.topic_id for name, facts in found.items() if facts is not None}


def _has_state(data_dir: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(any((data_dir / one).iterdir()) for one in STATE if (data_dir / one).is_dir())
    return False
