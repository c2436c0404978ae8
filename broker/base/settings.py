"""Every setting of the broker: one typed place, with default, unit and reason.

Read from the environment, ``TUREEN_<NAME>``; ``tureen serve`` has options for the common ones. Kafka's own
settings pass through untouched: ``TUREEN_KAFKA__<KAFKA_SETTING>`` with ``_`` for ``.``
(``TUREEN_KAFKA__BOOTSTRAP_SERVERS``, ``TUREEN_KAFKA__SECURITY_PROTOCOL``), or a properties file named by
``TUREEN_KAFKA_PROPERTIES``; the environment wins. Without ``bootstrap.servers`` the embedded node is used.

Relations between settings are checked at the start, once; a contradiction is a :class:`SettingsError`.
Imports neither numpy nor pyarrow, so that the control process stays small.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from broker.base.tls import check_pair
from topics.control_records import entry_bytes_max
from topics.settings import kafka_settings
from topics.sizes import RECORD_BYTES_LEAST, RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES
from tureen.errors import SettingsError
from tureen.protocol import TOKEN_TEXT, TopicNames, is_token

KIB = 1024
MIB = 1024 * KIB
DAY_MS = 86_400_000
SOCKET_PATH_BYTES_MAX = 100
FLIGHT_THREADS_MAX = 1_024
"""Unix socket addresses end at 104 bytes on macOS, 108 on Linux."""


def default_data_dir() -> Path:
    """Where this user's applications keep what must survive a restart."""
    import platformdirs

    return Path(platformdirs.user_data_dir("tureen", appauthor=False))


def default_shards() -> int:
    """Number of shards of a new service: one for each core, at least 2 and at most 16. Each has a thread and
    transactions of its own.
    """
    return min(16, max(2, os.cpu_count() or 2))


class Settings(BaseSettings):
    """The broker's settings; units are in the names. One field a setting, so all are checked together."""

    model_config = SettingsConfigDict(
        env_prefix="TUREEN_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    service_id: str = Field("tureen", description="Prefix of every topic, group and transactional id.")
    data_dir: Path = Field(default_factory=default_data_dir, description="Stores, lock and socket.")
    costs_file: Path | None = Field(
        None,
        description="Where costs of operators, measured at a start, are kept for a day; none: in data_dir.",
    )
    kafka_properties: Path | None = Field(None, description="A Java properties file of Kafka settings.")

    http_host: str = Field("127.0.0.1", description="A non-loopback address needs TLS and a token.")
    http_port: int = Field(8080, ge=0, le=65_535, description="0: a free one, printed at the start.")
    postgres_port: int | None = Field(
        None,
        ge=0,
        le=65_535,
        description="Clients of PostgreSQL's protocol connect here, on http_host; none: nobody does. Their "
        "password is a token; with a certificate they may ask for TLS, and must from other machines.",
    )
    flight_port: int | None = Field(
        None,
        ge=0,
        le=65_535,
        description="Clients of Arrow Flight SQL (ADBC, JDBC) connect here, on http_host, with a token as "
        "bearer or as password; with a certificate it speaks TLS alone. None: nobody does.",
    )
    flight_calls_max: int = Field(
        64, ge=1, le=1_024, description="Calls of Flight SQL that are answered at the same time."
    )
    flight_subscriptions_max: int = Field(
        256,
        ge=1,
        description="SUBSCRIBEs of Flight SQL that are followed, besides these calls; as each has a thread, "
        "both are 1,024 at most.",
    )
    http_hosts: str = Field(
        "",
        description="Names by which clients reach it besides localhost, its own and http_host, divided by "
        "commas; a request that names another host is refused (DNS rebinding).",
    )
    http_token: SecretStr | None = Field(None, description="Bearer token that every request must carry.")
    http_read_token: SecretStr | None = Field(
        None, description="Bearer token that only reads: who carries it looks, and changes nothing."
    )
    page: Literal["on", "read-only", "off"] = Field(
        "on", description="The page at /: with all that the API can do, to look at, or not served."
    )
    http_tls_certificate: Path | None = Field(None, description="PEM chain; with it the broker uses https.")
    http_tls_key: Path | None = Field(None, description="PEM key of the certificate.")
    http_threads: int = Field(8, ge=1, le=64, description="Answers computed at the same time.")
    answer_ms_max: int = Field(
        60_000, ge=100, description="An answer that takes longer is refused; it waits for a thread, too."
    )
    request_work_threads: int = Field(
        2,
        ge=1,
        le=64,
        description="Plans, checks, matches, traces, dry runs that are worked out at the same time; others "
        "wait. Shards go on meanwhile.",
    )
    request_work_waiting_max: int = Field(
        64, ge=0, description="Of these so many wait; more are refused with 503."
    )
    request_work_ms_max: int = Field(
        10_000, ge=100, description="What a request asks of these is refused if it takes longer."
    )
    preparation_threads: int = Field(
        2,
        ge=1,
        le=64,
        description="On each shard, registrations, changes and removals of queries for which state and whole "
        "answers are made at the same time, beside the steps; others wait.",
    )
    preparation_ms_max: int = Field(
        600_000,
        ge=1_000,
        description="What takes longer to be made is refused, so that it keeps no others waiting.",
    )
    analyze_rows_max: int = Field(
        20_000_000, ge=1, description="Rows of windows that one EXPLAIN ANALYZE looks at; with more, none."
    )

    shards: int = Field(
        default_factory=default_shards,
        ge=1,
        le=1_024,
        description="Fixed for the life of a service's topics: where nothing is set, as many as these have; "
        "new ones get one for each core, 2 to 16.",
    )
    step_rows_max: int = Field(8_192, ge=1, le=65_536, description="Rows of one step.")
    step_bytes_max: int = Field(
        4 * MIB,
        ge=64 * KIB,
        le=1_024 * MIB,
        description="Bytes of the records of one step; one record, however large, is always taken. Few large "
        "records take as long as many small ones, and other streams wait meanwhile.",
    )
    shed_queue_bytes: int = Field(
        64 * MIB,
        ge=MIB,
        le=65_536 * MIB,
        description="By so much what waits in the topic of a stream may grow; from 80 % of it on, until "
        "below 50 %, rows are shed for queries that tolerate it.",
    )
    transaction_rows_max: int = Field(
        65_536, ge=1, description="Rows journalled by one commit while the log is behind: commits cost ms."
    )
    transaction_records_max: int = Field(
        50_000,
        ge=1_000,
        description="Changes written by one commit, approximately: what a query changes beyond it is written "
        "by the next commits, and steps become smaller.",
    )
    transaction_bytes_max: int = Field(
        32 * MIB, ge=MIB, description="Bytes of changes written by one commit, approximately; as the records."
    )
    transaction_write_ms: int = Field(
        250,
        ge=50,
        description="Where writing changes takes longer, the next commits write fewer: so long other queries "
        "wait for those of one.",
    )
    transaction_timeout_ms: int = Field(
        10_000,
        ge=5_000,
        description="Kafka aborts a transaction that takes longer.",
    )
    heartbeat_ms: int = Field(250, ge=10, description="How often the clock of streams without records moves.")
    first_record_wait_ms: int = Field(
        5_000, ge=0, description="How long NOW waits for the first record of a new partition, at most."
    )
    scheduler: Literal["fifo", "round-robin", "greedy", "chain", "chain-deadline", "weighted-fair"] = Field(
        "fifo",
        description="Which stream's records a shard takes up next where several have some; may be changed "
        "while it runs (attribute `policy` of `scheduler`).",
    )
    linger_ms: int = Field(
        20,
        ge=0,
        le=1_000,
        description="Few records are followed by the next so long after they were taken up, up to twice as "
        "long where they take much of the processor: one commit has what came meanwhile. Not if more wait.",
    )
    preference_step_ms: int = Field(
        20,
        ge=1,
        le=50,
        description="How long a step may work for queries with a preference: records that come meanwhile "
        "wait for it.",
    )
    preference_share: float = Field(
        0.1,
        gt=0,
        le=0.5,
        description="Share of the time that queries with a preference have while records wait in the log.",
    )
    preference_work_per_s_max: int | None = Field(
        None,
        ge=0,
        description="Units of work a second that each shard may spend for queries with a preference; none: "
        "what is free. May be changed while it runs (attribute of `shard`).",
    )
    poll_ms: int = Field(
        25,
        ge=1,
        description="How soon records are looked at again that wait for other streams, or for memory.",
    )
    save_interval_ms: int = Field(500, ge=0, description="Longest time between two saves of a busy store.")
    save_rows: int = Field(65_536, ge=1, description="Rows after which the store is always saved.")
    state_partitions: int = Field(
        10,
        ge=1,
        le=65_536,
        description="Parts in which operators keep rows by their exit; a query may ask for others.",
    )
    expiry_lazy_fraction: float = Field(
        0.05,
        gt=0,
        le=1,
        description="Where nobody sees rows leave, they are let go of so late, as a share of their window.",
    )
    revise_interval_ms: int = Field(
        5_000,
        ge=100,
        description="How often maintenance is chosen again by measured costs, unless it was set.",
    )
    swap_after_ms: int = Field(
        0,
        ge=0,
        description="A query that nobody asked for so long is swapped out: only the store has it. 0: none.",
    )
    topic_check_ms: int = Field(5_000, ge=100, description="How often source topics are looked up again.")
    retry_ms: int = Field(1_000, ge=10, description="Between attempts while Kafka or the disk is missing.")

    outcome_wait_ms: int = Field(
        15_000, ge=0, description="HTTP writes are answered with 202 if they take longer."
    )
    publish_timeout_ms: int = Field(4_000, ge=100, description="HTTP writes fail when Kafka takes longer.")
    stop_timeout_ms: int = Field(
        10_000, ge=4_000, description="A process that takes longer to stop is killed."
    )
    liveness_timeout_ms: int = Field(
        60_000,
        ge=1_000,
        description="A process whose event loop, or a shard of which, hangs for so long is replaced.",
    )
    command_batch: int = Field(4_000, ge=1, description="Commands in one message of the control process.")

    memory_budget_bytes: int = Field(
        0,
        ge=0,
        description="Memory of the worker; 0: what the cgroup or the machine has, less what others need.",
    )
    state_bytes_max: int = Field(
        0,
        ge=0,
        description="A query that keeps more for itself is paused, it alone. 0: half of the memory budget.",
    )
    spill_bytes_max: int = Field(
        256 * 2**30,
        ge=0,
        description="Disk that rows may take which memory has no room for. 0: all stay in memory.",
    )

    allocation_begin: float = Field(
        0.75,
        gt=0,
        le=0.8,
        description="Share of the memory budget from which on queries that tolerate it are given less; at "
        "0.8 nothing is registered any more.",
    )
    allocation_target: float = Field(
        0.7, gt=0, le=0.8, description="Share of the memory budget that is then to be in use."
    )
    allocation_end: float = Field(
        0.6, gt=0, le=0.8, description="Share of the memory budget below which they are given more again."
    )
    allocation_ms: int = Field(
        5_000, ge=100, le=600_000, description="Least time between two allocations, for memory to come back."
    )

    sql_bytes_max: int = Field(64 * KIB, ge=64)
    nesting_max: int = Field(64, ge=1)
    queries_max: int = Field(200_000, ge=1, description="Registered queries of this worker.")
    request_bytes_max: int = Field(MIB, ge=KIB, description="Body of one HTTP request.")
    request_bulk_bytes_max: int = Field(64 * MIB, ge=KIB, description="Body of an NDJSON request.")
    requests_bytes_max: int = Field(
        256 * MIB,
        ge=KIB,
        description="Bodies of all requests that are in memory together; more are refused with 503.",
    )
    request_head_timeout_ms: int = Field(
        10_000, ge=100, description="Time for a request's head; a client sends it in one piece."
    )
    request_body_timeout_ms: int = Field(
        30_000,
        ge=100,
        description="How long a client is waited for that sends nothing of a body, or takes nothing of an "
        "answer; slower than request_rate_bytes_min counts as nothing.",
    )
    request_rate_bytes_min: int = Field(
        8 * KIB,
        ge=1,
        description="Bytes a second that a slow line carries; who is slower is cut off in time.",
    )
    http_connections_max: int = Field(
        12_000, ge=8, description="Open connections: all feeds, and others; more are refused with 503."
    )
    snapshot_rows_max: int = Field(1_000_000, ge=1)
    snapshot_bytes_max: int = Field(256 * MIB, ge=KIB)
    feeds_max: int = Field(10_000, ge=1, description="Open change feeds and polls of this node.")
    event_listeners_max: int = Field(
        1_000,
        ge=1,
        description="Open streams of events (/status/events, /entities/events); an open page has one or two.",
    )
    feeds_memory_bytes: int = Field(
        64 * MIB,
        ge=64 * KIB,
        description="Memory for recent changes of followed queries, from which feeds resume.",
    )
    feeds_memory_ms: int = Field(300_000, ge=1_000, description="Changes are kept at most so long.")
    feeds_linger_ms: int = Field(
        60_000,
        ge=0,
        description="Changes of a query are kept so long after its last feed, for readers that reconnect.",
    )
    feed_progress_ms: int = Field(
        10_000, ge=100, description="How often a feed without changes sends its position."
    )
    feed_write_timeout_ms: int = Field(
        30_000, ge=100, description="A feed is closed if its reader reads nothing for so long."
    )
    reply_chunk_bytes: int = Field(
        512 * KIB, ge=KIB, description="Replies by topic are split into pieces of this size."
    )

    results_partitions: int = Field(
        4, ge=1, le=1_024, description="For result topics that the broker creates."
    )
    results_retention_ms: int = Field(
        7 * DAY_MS,
        ge=60_000,
        description="How long result topics keep changes, and compacted ones deletions.",
    )
    record_bytes_max: int = Field(
        RECORD_BYTES_MAX,
        ge=RECORD_BYTES_LEAST,
        le=64 * MIB,
        description="The largest record that the broker writes; its topics must take as much.",
    )
    result_record_bytes_max: int = Field(
        1_000_000,
        ge=KIB,
        le=64 * MIB,
        description="Key and value of one record of a result topic; Kafka's default for topics.",
    )
    plans_mirror: bool = Field(
        True, description="Plans of registered queries are written to the topic .plans."
    )
    changes_max: int = Field(
        1_000_000,
        ge=1,
        description="Changes of one answer in one step, and of those that wait to be written; with more the "
        "query ends: a million take up to a second to compute, and 100 MB until they are written.",
    )
    into_topics_max: int = Field(100, ge=0, description="Result topics that queries name.")
    schema_registry_url: str = Field(
        "", description="For Avro and JSON Schema; mock:// is a registry in memory."
    )
    schema_registry_user: SecretStr | None = Field(
        None, description="name:password, if the registry requires it."
    )
    schema_registry_ca: Path | None = Field(None, description="PEM file of authorities for its https.")
    schema_registry_options: SecretStr | None = Field(
        None,
        description="JSON object of other settings of the registry's client: a bearer token, TLS, retries.",
    )

    archive: str = Field(
        "", description="Root of the archive: a directory or a URI; without it there is none."
    )
    archive_options: SecretStr | None = Field(
        None, description="JSON object of options for the archive's storage: credentials, endpoints."
    )
    archive_rows_max: int = Field(
        5_000_000, ge=1, description="Rows that one answer may read from the archive."
    )
    archive_timeout_ms: int = Field(
        25_000, ge=100, description="An answer that takes longer to read the archive is refused."
    )
    archive_answers_max: int = Field(
        2, ge=1, le=64, description="Answers that read the archive at the same time; others wait."
    )
    archive_waiting_max: int = Field(
        32, ge=0, description="Answers that may wait for the archive; more are refused."
    )
    archive_check_ms: int = Field(5_000, ge=10, description="How often the archive is checked for new rows.")
    archive_retry_ms: int = Field(
        60_000, ge=10, description="Longest pause between attempts at an archive that cannot be read."
    )
    backfill_rows_max: int = Field(
        20_000_000, ge=1, description="Rows of a stream up to which its history is backfilled into memory."
    )
    backfill_chunk_rows: int = Field(262_144, ge=1, description="Rows backfilled in one step, at least.")

    functions: str = Field("", description="Modules with functions for SQL, divided by commas.")
    functions_path: Path = Field(
        Path(), description="Directory that is searched last for them; by default the working directory."
    )

    function_call_ms_max: int = Field(200, ge=1, le=60_000, description="Longest call of an isolated one.")
    function_memory_bytes_max: int = Field(1 << 30, ge=1 << 20, description="For such ones of one process.")
    function_processes_max: int = Field(4, ge=1, le=64, description="Their processes at work together.")

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["console", "json"] = "console"

    internal_socket: Path | None = Field(None, description="Set by the supervisor.")
    internal_secret: SecretStr | None = Field(None, description="Set by the supervisor.")
    embedded_kafka: bool = Field(False, description="Set by serve: Kafka is on this machine for this broker.")
    liveness_file: Path | None = Field(None, description="Set by the supervisor: where signs of life go.")
    supervisor_fd: int | None = Field(None, description="Set by the supervisor: closes when it is gone.")

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", self.service_id):
            raise ValueError(
                "service_id must have 1 to 100 letters, digits, - and _: topic names begin with it"
            )
        _at_most(self, "request_bytes_max", "request_bulk_bytes_max")
        _at_most(self, "request_bulk_bytes_max", "requests_bytes_max")
        _at_most(self, "feeds_max", "http_connections_max")
        self._check_flight_threads()
        _at_most(self, "step_rows_max", "transaction_rows_max")
        _at_most(self, "sql_bytes_max", "request_bytes_max")
        _at_most(self, "request_work_ms_max", "answer_ms_max")
        _at_most(self, "answer_ms_max", "preparation_ms_max")
        self._check_record_sizes()
        _at_most(self, "poll_ms", "heartbeat_ms")
        _at_most(self, "linger_ms", "heartbeat_ms")
        _at_most(self, "preference_step_ms", "heartbeat_ms")
        _at_most(self, "retry_ms", "topic_check_ms")
        if self.liveness_timeout_ms < 4 * max(self.heartbeat_ms, self.retry_ms):
            raise ValueError("liveness_timeout_ms must be at least four times heartbeat_ms and retry_ms")
        _at_most(self, "allocation_end", "allocation_target")
        _at_most(self, "allocation_target", "allocation_begin")
        _at_most(self, "backfill_chunk_rows", "backfill_rows_max")
        _ = self.archive_storage
        if self.archive_options is not None and not self.archive:
            raise ValueError("archive_options need an archive: set archive as well")
        _at_most(self, "result_record_bytes_max", "transaction_bytes_max")
        if self.transaction_write_ms * 4 > self.transaction_timeout_ms:
            raise ValueError("transaction_timeout_ms must be at least four times transaction_write_ms")
        if self.heartbeat_ms * 4 > self.transaction_timeout_ms:
            raise ValueError("transaction_timeout_ms must be at least four times heartbeat_ms")
        if not re.match(r"(https?|mock)://.|$", self.schema_registry_url):
            raise ValueError("schema_registry_url begins with http:// or https://")
        for path in (
            self.http_tls_certificate,
            self.http_tls_key,
            self.kafka_properties,
            self.schema_registry_ca,
        ):
            if path is not None and not path.is_file():
                raise ValueError(f"{path} is not a file")
        check_pair(self.http_tls_certificate, self.http_tls_key)
        if not is_loopback(self.http_host) and (self.http_tls_certificate is None or self.http_token is None):
            raise ValueError(
                f"http_host={self.http_host} can be reached from other machines: set http_tls_certificate, "
                "http_tls_key and http_token, or bind 127.0.0.1"
            )
        for name in self.host_names:
            if not re.fullmatch(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+", name):
                raise ValueError(f"http_hosts has names and addresses without ports, not {name!r}")
        tokens = {"http_token": self.http_token, "http_read_token": self.http_read_token}
        for name, token in tokens.items():
            if token is not None and len(token.get_secret_value()) < 16:
                raise ValueError(f"{name} has less than 16 characters")
            if token is not None and not is_token(token.get_secret_value()):
                raise ValueError(f"{name}: {TOKEN_TEXT}")
        if self.http_token is not None and self.http_token == self.http_read_token:
            raise ValueError("http_read_token is the http_token, which does not only read: choose another")
        return self

    def _check_flight_threads(self) -> None:
        if self.flight_calls_max + self.flight_subscriptions_max > FLIGHT_THREADS_MAX:
            raise ValueError(
                f"flight_calls_max={self.flight_calls_max} and flight_subscriptions_max="
                f"{self.flight_subscriptions_max} are above {FLIGHT_THREADS_MAX} together"
            )

    def _check_record_sizes(self) -> None:
        """What the broker writes as one record must fit into one."""
        for name, size in (
            ("result_record_bytes_max", self.result_record_bytes_max),
            ("reply_chunk_bytes", self.reply_chunk_bytes),
            ("sql_bytes_max", entry_bytes_max(self.sql_bytes_max)),
        ):
            least = size + 2 * RECORD_OVERHEAD_BYTES
            if least > self.record_bytes_max:
                raise ValueError(
                    f"record_bytes_max={self.record_bytes_max} must be at least {least} with "
                    f"{name}={getattr(self, name)}"
                )

    @property
    def host_names(self) -> list[str]:
        """The names that ``http_hosts`` gives."""
        return [name.strip() for name in self.http_hosts.split(",") if name.strip()]

    @property
    def function_modules(self) -> list[str]:
        """The modules that ``functions`` names."""
        return [name.strip() for name in self.functions.split(",") if name.strip()]

    @property
    def archive_storage(self) -> dict[str, str]:
        """What ``archive_options`` says. Raises ValueError, without a word of what stands there."""
        if self.archive_options is None:
            return {}
        try:
            options = json.loads(self.archive_options.get_secret_value())
        except ValueError:
            options = None
        if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
            raise ValueError('archive_options is a JSON object of texts: {"aws_region": "eu-central-1"}')
        return options

    @property
    def archive_shown(self) -> str:
        """The archive's root as it may be printed: without a name and a password in it."""
        return re.sub(r"(?<=://)[^/@]*@", "", self.archive)

    @property
    def names(self) -> TopicNames:
        return TopicNames(self.service_id)

    @property
    def costs_path(self) -> Path:
        """Where measured costs are kept."""
        return self.costs_file or self.data_dir / "costs.json"

    @property
    def socket_path(self) -> Path:
        """Where worker and control meet: in the data directory, unless its path is too long for a socket."""
        return self.internal_socket or self.data_dir / "worker.sock"

    @property
    def secret(self) -> str:
        """What calls on the socket carry. Raises SettingsError: no supervisor started this process."""
        if self.internal_secret is None:
            raise SettingsError(
                "this process has no secret of its node", hint="tureen serve starts it, and gives it one"
            )
        return self.internal_secret.get_secret_value()

    @property
    def url(self) -> str:
        scheme = "https" if self.http_tls_certificate else "http"
        host = f"[{self.http_host}]" if ":" in self.http_host else self.http_host
        return f"{scheme}://{host}:{self.http_port}"

    def transactional_id(self, shard: int) -> str:
        return f"{self.service_id}-shard-{shard}"

    def kafka(self) -> dict[str, str]:
        """Kafka's own settings; without ``bootstrap.servers`` where none is configured."""
        return kafka_settings(file=self.kafka_properties)


def _at_most(settings: Settings, low: str, high: str) -> None:
    if getattr(settings, low) > getattr(settings, high):
        raise ValueError(f"{low}={getattr(settings, low)} is above {high}={getattr(settings, high)}")


def is_loopback(host: str) -> bool:
    """True for addresses that only this machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load(**given: Any) -> Settings:
    """The settings of this process; options that are not None win over the environment.

    Raises SettingsError: every value that is out of range, and every contradiction.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as refused:
        lines = []
        for error in refused.errors(include_url=False, include_input=False):
            name = "_".join(str(part) for part in error["loc"])
            reason = error["msg"].removeprefix("Value error, ")
            lines.append(f"TUREEN_{name.upper()}: {reason}" if name else reason)
        raise SettingsError("; ".join(lines)) from None
