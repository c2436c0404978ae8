"""The codec: whatever comes is a message or a ProtocolViolation, and proofs of others are refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.postgres import messages
from broker.postgres.messages import NotUnicode, ProtocolViolation
from broker.postgres.scram import AuthenticationFailed, Exchange, Verifier, mechanism_and_data


@given(st.sampled_from(b"QPBDECSHXpdcf").map(lambda one: bytes([one])), st.binary(max_size=80))
def test_whatever_comes_is_a_message_or_refused(letter: bytes, body: bytes) -> None:
    try:
        found = messages.read(letter, body)
    except (ProtocolViolation, NotUnicode):
        return
    assert isinstance(found, tuple)


@given(st.binary(max_size=80))
def test_whatever_begins_is_a_beginning_or_refused(body: bytes) -> None:
    try:
        found = messages.read_startup(body)
    except (ProtocolViolation, NotUnicode):
        return
    assert found.code >> 16 == 3 or found.code in (80877102, 80877103, 80877104)


def test_fields_of_messages() -> None:
    body = b"p\0s\0" + struct.pack("!hh", 1, 1) + struct.pack("!h", 2) + struct.pack("!i", 3) + b"abc"
    body += struct.pack("!i", -1) + struct.pack("!hh", 1, 0)
    assert messages.read(b"B", body) == messages.Bind("p", "s", (1,), (b"abc", None), (0,))
    assert messages.read(b"P", b"s\0SELECT 1\0" + struct.pack("!hI", 1, 20)) == messages.Parse(
        "s", "SELECT 1", (20,)
    )
    with pytest.raises(ProtocolViolation):
        messages.read(b"S", b"x")
    with pytest.raises(ProtocolViolation):
        messages.require_known(b"Z")


def proof(token: str, verifier: Verifier, exchange: Exchange, nonce: bytes = b"abc") -> bytes:
    bare = b"n=,r=" + nonce
    said = exchange.first(b"n,," + bare)
    facts = dict(part.split(b"=", 1) for part in said.split(b","))
    salted = hashlib.pbkdf2_hmac("sha256", token.encode(), base64.b64decode(facts[b"s"]), int(facts[b"i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    final = b"c=biws,r=" + facts[b"r"]
    signature = hmac.digest(hashlib.sha256(key).digest(), b",".join((bare, said, final)), "sha256")
    signed = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return final + b",p=" + base64.b64encode(signed)


def test_each_token_has_its_right() -> None:
    verifier = Verifier("the-full-token-of-it", "the-token-that-reads")
    for token, right in (("the-full-token-of-it", "full"), ("the-token-that-reads", "read")):
        exchange = Exchange(verifier)
        assert exchange.final(proof(token, verifier, exchange))[0] == right
    exchange = Exchange(verifier)
    with pytest.raises(AuthenticationFailed):
        exchange.final(proof("another-token-of-all", verifier, exchange))


def test_a_proof_serves_once() -> None:
    verifier = Verifier("the-full-token-of-it", None)
    first = Exchange(verifier)
    recorded = proof("the-full-token-of-it", verifier, first)
    first.final(recorded)
    second = Exchange(verifier)
    second.first(b"n,,n=,r=abc")
    with pytest.raises(AuthenticationFailed):
        second.final(recorded)


@given(st.binary(max_size=120))
def test_broken_exchanges_fail(data: bytes) -> None:
    exchange = Exchange(Verifier.__new__(Verifier))
    with pytest.raises(AuthenticationFailed):
        exchange.final(data)
    if not data.startswith((b"n,", b"y,")):
        with pytest.raises(AuthenticationFailed):
            exchange.first(data)
    try:
        mechanism_and_data(data)
    except AuthenticationFailed:
        return
    assert b"\0" in data
