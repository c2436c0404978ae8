"""Which query a request means: by its handle, or, for the operator, by its public id or its name.

A handle opens an answer. The operator, who has the broker's token, or without one calls from this machine,
may describe, pause and end any query by its public id or its name, which lists show; a handle alone opens an
answer. Who has the token that only reads is not the operator.
"""

from __future__ import annotations

from functools import lru_cache

from starlette.types import Scope

from broker.base.settings import Settings, is_loopback
from broker.http.rights import Tokens
from broker.node.node import Node
from engine.language.places import did_you_mean
from tureen.errors import BrokerUnavailable, HandleNeeded, NotAllowed, UnknownQuery
from tureen.protocol import query_id

COMPARED_MAX = 100
"""With so many names of queries what was given is compared: of more it would take long."""
LISTED = "SHOW QUERIES lists the ids and the names of queries"

_query_id = lru_cache(16_384)(query_id)


def is_operator(scope: Scope, settings: Settings) -> bool:
    """Whether a request that passed the guard comes from the operator."""
    if Tokens(settings).reads(scope):
        return False
    if settings.http_token is not None:
        return True
    client = scope.get("client")
    return client is None or is_loopback(client[0])


def require_operator(operator: bool, what: str = "edit what queries share") -> None:
    """Raises NotAllowed where somebody else asks. what: to do."""
    if not operator:
        raise NotAllowed(what)


def named(node: Node, given: str, operator: bool) -> str:
    """The id of the query of a handle; the operator may give the id itself, or the query's name. It may not
    exist.

    Raises HandleNeeded where somebody else gives the id or the name of a query.
    """
    name = _query_id(given)
    if node.directory.found(name) is not None:
        return name
    called = None if node.directory.found(given) is not None else given
    public = given if called is None else node.directory.queries.names.id_of(called)
    if public is None:
        return name
    if not operator:
        raise HandleNeeded(public, "public id" if called is None else "name")
    return public


def known(node: Node, given: str, operator: bool, *, compared: bool = True) -> str:
    """As :func:`named`, of a query that exists. Raises UnknownQuery, BrokerUnavailable as well.

    compared: where it does not exist, the operator is told which name is like it, unless there are more than
    ``COMPARED_MAX``. O(1), and then O(names).
    """
    name = named(node, given, operator)
    if node.directory.found(name) is None:
        if not node.life.reconciled:
            raise BrokerUnavailable("the registry is still being read", hint="repeat it in a second")
        raise UnknownQuery(hint=_hint(node, given if compared and operator else None))
    return name


def _hint(node: Node, given: str | None) -> str:
    """What to write in the place of what is no query's. given: it is compared with names; None: it is not."""
    names = node.directory.queries.names.all()
    close = did_you_mean(given, names) if given is not None and len(names) <= COMPARED_MAX else None
    return LISTED if close is None else f"{close} {LISTED}" if close.endswith("?") else f"{close}; {LISTED}"


def opened(node: Node, handle: str) -> str:
    """The id of the query that a handle opens; it may not exist. Raises HandleNeeded."""
    return named(node, handle, operator=False)
