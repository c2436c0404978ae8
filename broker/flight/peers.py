"""The connections of gRPC's clients: who is at the other end of one, and closing it.

gRPC names a peer ``ipv4:127.0.0.1:1234`` or ``ipv6:[::1]:1234``, in which it may write brackets as %5B and
%5D. It has no call that closes a peer's connection, so the socket is found among those of the process.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Collection, Iterator
from ipaddress import IPv6Address, ip_address

Address = tuple[str, int]
"""Host, an address of IPv4 where it is one, and port."""

DESCRIPTORS = "/dev/fd"


def address_of(peer: str) -> Address:
    """Read a peer's name.

    >>> [address_of(one) for one in ("ipv4:127.0.0.1:1", "ipv6:%5B::1%5D:7", "ipv6:[::ffff:1.2.3.4]:8")]
    [('127.0.0.1', 1), ('::1', 7), ('1.2.3.4', 8)]
    """
    host, _, port = peer.partition(":")[2].rpartition(":")
    return _plain(host.replace("%5B", "[").replace("%5D", "]").strip("[]")), int(port)


def close(peers: Collection[Address], port: int) -> None:
    """Close the connections of peers to a port of this process, whatever goes on in them. O(open files)."""
    for one in _connections(port):
        with contextlib.suppress(OSError):  # it has gone
            host, number = one.getpeername()[:2]
            if (_plain(host), number) in peers:
                one.shutdown(socket.SHUT_RDWR)


def _connections(port: int) -> Iterator[socket.socket]:
    """Sockets of the process whose own port is ``port``, each while it is looked at."""
    for name in os.listdir(DESCRIPTORS):
        with contextlib.suppress(OSError):  # closed meanwhile, or no socket of the internet
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with _opened(os.dup(int(name))) as one:
                own = one.getsockname()
                if one.family in (socket.AF_INET, socket.AF_INET6) and own[1] == port:
                    yield one


def _opened(descriptor: int) -> socket.socket:
    try:
        return socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        raise


def _plain(host: str) -> str:
    """An address of IPv6 that stands for one of IPv4 as that."""
    found = ip_address(host.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)
