"""How Faust is set for the control process."""

from __future__ import annotations

import faust

from broker.base.settings import Settings
from broker.control.credentials import broker_urls, credentials
from broker.control.uncounted import Uncounted
from broker.control.writer import WrittenTable


def faust_app(settings: Settings, kafka: dict[str, str]) -> faust.App:
    """An application without agents, tables and tasks. kafka: Kafka's own settings."""
    return faust.App(
        settings.names.control_group,
        broker=broker_urls(kafka),
        broker_credentials=credentials(kafka),
        store="rocksdb://",
        Table=WrittenTable,
        Monitor=Uncounted,
        datadir=str(settings.data_dir / "control"),
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=True,
        topic_replication_factor=1,
        broker_session_timeout=10,
        broker_heartbeat_interval=2,
        broker_rebalance_timeout=1,  # so long a start waits for the process before it, which may be dead
        broker_request_timeout=12,
        broker_commit_interval=1.0,
        broker_max_poll_records=4_000,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=2 * settings.record_bytes_max,
        producer_linger=0.0,
        producer_max_request_size=settings.record_bytes_max,
        stream_recovery_delay=0.0,
        stream_wait_empty=False,
        stream_buffer_maxsize=4_096,
        table_cleanup_interval=3_600.0,
        key_serializer="raw",
        value_serializer="raw",
    )
