"""Every way in which operators keep rows."""

from __future__ import annotations

from engine.dataflow.policy import ONE_STORE, TOLD, Policy

POLICIES = (
    TOLD,
    Policy("nt"),
    Policy("direct"),
    Policy("upa"),
    Policy("upa", partitions=1),
    Policy("upa", "negative"),
    Policy("upa", "indexed"),
    Policy("upa", "indexed", 2),
    ONE_STORE,
)
