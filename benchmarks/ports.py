"""Ports that nobody listens on."""

import socket


def free_ports(count: int) -> list[int]:
    """All are held until all are known, so they differ."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()
