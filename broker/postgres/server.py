"""Listens for clients of PostgreSQL's protocol."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from typing import Any

from broker.base import logs
from broker.base.settings import Settings
from broker.postgres import row_messages
from broker.postgres.answering import Services
from broker.postgres.connection import Connection
from broker.postgres.scram import Verifier
from broker.runtime.in_flight import InFlight
from tureen.errors import BrokerUnavailable

BACKLOG = 512

log = logs.get()


class PostgresServer:
    """What its connections share: see :class:`broker.postgres.connection.Door`."""

    is_counted = True
    """Whether ``in_flight`` has its connections among all."""

    def __init__(self, settings: Settings, services: Services, in_flight: InFlight) -> None:
        """services: with the node and the answers that all doors share."""
        self._settings = settings
        self.services = services
        self.in_flight = in_flight
        self.tls = _tls(settings)
        full, read = settings.http_token, settings.http_read_token
        self.verifier = (
            None
            if full is None
            else Verifier(full.get_secret_value(), None if read is None else read.get_secret_value())
        )
        self._connections: dict[int, Connection] = {}
        self._server: asyncio.Server | None = None
        self.port = settings.postgres_port
        """Once it listens, the one that it has where any free one was asked for."""
        row_messages.prepare()

    @property
    def connections(self) -> int:
        """How many were let in."""
        return len(self._connections)

    def facts(self) -> dict[str, Any]:
        """What is told of the door."""
        return {
            "protocol": "postgresql",
            "host": self._settings.http_host,
            "port": self.port,
            "tls": self.tls is not None,
            "token": self.verifier is not None,
            "connections": self.connections,
        }

    async def serve(self) -> None:
        """Listen until cancelled. Raises OSError: the port is in use."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self),
            self._settings.http_host,
            self._settings.postgres_port,
            backlog=BACKLOG,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        log.info("postgres_listens", host=self._settings.http_host, port=self.port)
        await self._server.serve_forever()

    async def stop(self) -> None:
        """Listen no more, and tell every client that it ends."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections.values()):
            connection.end(BrokerUnavailable("the broker is stopping", hint="connect again in a second"))
        self.services.evaluation.close()

    def enter(self, connection: Connection) -> int:
        """The number by which a connection that was let in may be cancelled."""
        number = 0
        while number == 0 or number in self._connections:
            number = secrets.randbelow(1 << 31)
        self._connections[number] = connection
        return number

    def leave(self, connection: Connection) -> None:
        """It has gone."""
        if self._connections.get(connection.key[0]) is connection:
            del self._connections[connection.key[0]]

    def cancel(self, key: bytes) -> None:
        """Cancel what the connection with this number and secret does, if there is one."""
        connection = self._connections.get(int.from_bytes(key[:4]))
        if connection is not None:
            connection.cancel(key[4:])


def _tls(settings: Settings) -> ssl.SSLContext | None:
    """As HTTP has it; a client that does not ask for it does without, from this machine."""
    if settings.http_tls_certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    assert settings.http_tls_key is not None
    context.load_cert_chain(settings.http_tls_certificate, settings.http_tls_key)
    return context
