"""Whether a port is free to listen on, found out by doing so for a moment."""

from __future__ import annotations

import socket


def why_taken(host: str, port: int) -> str | None:
    """What the system says against listening there; None: nothing. One that was just left is free."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return None
