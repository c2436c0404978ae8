"""What can go wrong around a Spark job, each with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tureen.errors import TureenError


class SparkError(TureenError):
    """The root of what goes wrong in or around Spark."""

    code = "spark"


class JavaUnsuitable(SparkError):
    """No Java that this Spark runs on. ``found``: what there is instead, one text each."""

    code = "java_unsuitable"

    def __init__(self, lowest: int, highest: int, found: Sequence[str], **facts: Any) -> None:
        self.lowest = lowest
        self.highest = highest
        self.found = tuple(found)
        there = f"; found {', '.join(self.found)}" if self.found else ", and none was found"
        super().__init__(f"Spark needs a Java from {lowest} to {highest}{there}", **facts)


class MasterUnreachable(SparkError):
    """Nobody answers where a cluster's master is said to be. ``master``: its URL."""

    code = "master_unreachable"

    def __init__(self, master: str, reason: str, **facts: Any) -> None:
        self.master = master
        self.reason = reason
        super().__init__(f"the master {master} cannot be reached: {reason}", **facts)


class ExecutorsMissing(SparkError):
    """A cluster gave no executor. ``master``: its URL; ``waited_s``: for so long."""

    code = "executors_missing"

    def __init__(self, master: str, waited_s: float, **facts: Any) -> None:
        self.master = master
        self.waited_s = waited_s
        super().__init__(f"{master} gave no executor within {waited_s:g} s", **facts)


class ExecutorsUnsuitable(SparkError):
    """The executors' Python cannot run our tasks. ``reason``: what is wrong with it."""

    code = "executors_unsuitable"

    def __init__(self, reason: str, **facts: Any) -> None:
        self.reason = reason
        super().__init__(f"executors cannot run the job: {reason}", **facts)


class JarsMissing(SparkError):
    """Spark's Kafka connector, Delta Lake or a package asked for could not be fetched, or is not loaded."""

    code = "jars_missing"


class InputMissing(SparkError):
    """No file is at this path. ``path`` is the one."""

    code = "input_missing"

    def __init__(self, path: str, **facts: Any) -> None:
        self.path = path
        super().__init__(f"there is no file at {path}", **facts)


class InputUnreadable(SparkError):
    """Files are there, and Spark can't read them as what they are said to be."""

    code = "input_unreadable"

    def __init__(self, paths: Sequence[str], reason: str, **facts: Any) -> None:
        self.paths = tuple(paths)
        self.reason = reason
        super().__init__(f"{', '.join(self.paths)} cannot be read: {reason}", **facts)


class InputMismatch(SparkError):
    """The input as a whole does not fit the stream: columns are missing, or of other types."""

    code = "input_mismatch"


class RowsRefused(SparkError):
    """Rows do not fit and no quarantine path was given. ``rows`` of them; ``examples`` of reasons."""

    code = "rows_refused"

    def __init__(self, rows: int, examples: Sequence[str], **facts: Any) -> None:
        self.rows = rows
        self.examples = tuple(examples)
        listed = "".join(f"\n  {example}" for example in self.examples)
        what = "1 row does" if rows == 1 else f"{rows:,} rows do"
        super().__init__(f"{what} not fit the stream; nothing was written{listed}", **facts)


class PathNotWritable(SparkError):
    """A path of the job's output cannot be written."""

    code = "path_not_writable"

    def __init__(self, path: str, reason: str, **facts: Any) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} cannot be written: {reason}", **facts)


class JobStopped(SparkError):
    """A signal ended the run before it was done. ``signal`` is its name."""

    code = "job_stopped"

    def __init__(self, signal: str, **facts: Any) -> None:
        self.signal = signal
        super().__init__(f"stopped by {signal} before it was done", **facts)


class CheckpointUnreadable(SparkError):
    """A file of a checkpoint is missing, damaged, or of another version."""

    code = "checkpoint_unreadable"

    def __init__(self, path: str, reason: str, **facts: Any) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the checkpoint {path} cannot be read: {reason}", **facts)


class CheckpointMismatch(SparkError):
    """A checkpoint directory is of something else: another job, other settings, another version."""

    code = "checkpoint_mismatch"

    def __init__(self, path: str, reason: str, **facts: Any) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the checkpoint {path} {reason}", **facts)


class RecordsLost(SparkError):
    """Records that were never read are gone from Kafka. ``lost``: what is known of them, one text each."""

    code = "records_lost"

    def __init__(self, lost: Sequence[str], **facts: Any) -> None:
        self.lost = tuple(lost)
        super().__init__(
            f"records are gone from Kafka before they were read: {'; '.join(self.lost)}", **facts
        )


class TableBusy(SparkError):
    """Another run changed the table that this one was changing. ``uri`` is the table."""

    code = "table_busy"

    def __init__(self, uri: str, **facts: Any) -> None:
        self.uri = uri
        facts.setdefault("hint", "another compaction works on it: let that end, then run this one again")
        super().__init__(f"{uri} was changed by another run meanwhile", **facts)


class CompactionRefused(SparkError):
    """A table of the archive that compaction can't work on as it is. ``uri`` is the table."""

    code = "compaction_refused"

    def __init__(self, uri: str, reason: str, **facts: Any) -> None:
        self.uri = uri
        self.reason = reason
        super().__init__(f"{uri} cannot be compacted: {reason}", **facts)


class CompactionFailed(SparkError):
    """A step of compaction did not come to its commit. ``uri`` is the table."""

    code = "compaction_failed"

    def __init__(self, uri: str, reason: str, **facts: Any) -> None:
        self.uri = uri
        self.reason = reason
        super().__init__(f"{uri} could not be changed: {reason}", **facts)


class TablesLeft(SparkError):
    """Compaction went through all tables but these. ``failures``: table -> the error it had."""

    code = "tables_left"

    def __init__(self, failures: Mapping[str, TureenError], **facts: Any) -> None:
        self.failures = dict(failures)
        listed = "".join(f"\n  {name}: {error}" for name, error in self.failures.items())
        what = "1 table was" if len(self.failures) == 1 else f"{len(self.failures)} tables were"
        facts.setdefault("hint", "the others are done; run it again for these")
        super().__init__(f"{what} unchanged{listed}", **facts)


class TopicReplaced(SparkError):
    """A table of the archive has the records of another topic, or of an earlier one of the same name.

    ``topic``: the one that is read; ``uri``: the table; ``archived``: the topic it has records of.
    """

    code = "topic_replaced"

    def __init__(self, topic: str, uri: str, archived: str, **facts: Any) -> None:
        self.topic = topic
        self.uri = uri
        self.archived = archived
        earlier = "that topic before it was deleted and created again" if archived == topic else archived
        super().__init__(f"{uri} has records of {earlier}, and those of {topic} are others", **facts)


class ServiceInUse(SparkError):
    """Somebody else owns the registry of a service that a scale-out was to own. ``owner``: who."""

    code = "service_in_use"

    def __init__(self, service_id: str, owner: str, **facts: Any) -> None:
        self.service_id = service_id
        self.owner = owner
        facts.setdefault(
            "hint",
            "stop it and wait ten seconds, or take another --service-id; both may read the same topics",
        )
        super().__init__(f"{owner} runs on the service {service_id}", **facts)
