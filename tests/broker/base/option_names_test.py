"""Names of options: those that look like an option and are none are refused, all others pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.base.options import PAUSED_BECAUSE, SETTABLE, check, check_names
from tureen.errors import OptionRefused

LETTERS = "abcdefghijklmnopqrstuvwxyz_"
SHORT = 4
"""A wrong letter of so few leaves less than NEAR in common: "jade" and "faed" are not taken for "fade"."""


def slips(name: str) -> Iterator[tuple[str, bool]]:
    """The name with each letter left out, doubled, another, or behind the next one. And whether all letters
    of one are in the other, in their order.
    """
    for at, letter in enumerate(name):
        before, behind = name[:at], name[at + 1 :]
        yield before + behind, True
        yield before + letter + letter + behind, True
        yield from ((before + other + behind, False) for other in LETTERS)
        yield before + behind[:1] + letter + behind[1:], not behind


@pytest.mark.parametrize("name", SETTABLE)
def test_a_slip_is_refused_and_the_hint_has_the_name(name: str) -> None:
    for slip, keeps_all in slips(name):
        if slip in SETTABLE:
            continue
        if len(name) <= SHORT and not keeps_all:
            check_names([slip])
            continue
        with pytest.raises(OptionRefused) as refusal:
            check({slip: "1"})
        assert repr(slip) in refusal.value.message
        assert name in (refusal.value.hint or "")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Paused", "paused"),
        ("WEIGHT", "weight"),
        ("latency-ms-max", "latency_ms_max"),
        ("latencyMsMax", "latency_ms_max"),
        ("latency_ms", "latency_ms_max"),
        ("maintanence", "maintenance"),
        ("partition", "partitions"),
    ],
)
def test_other_ways_to_write_a_name_are_refused(name: str, meant: str) -> None:
    with pytest.raises(OptionRefused, match=f"there is no option '{name}'") as refusal:
        check({name: None})
    assert meant in (refusal.value.hint or "")


def test_options_of_the_user_pass() -> None:
    own = [
        "team",
        "owner",
        "k",
        "",
        "state",
        "status",
        "priority",
        "start",
        "dashboard",
        "部署",
        "x" * 100_000,
    ]
    check_names([*own, *SETTABLE, PAUSED_BECAUSE])


@given(st.sampled_from(SETTABLE), st.text(min_size=30))
def test_a_name_that_begins_like_an_option_and_is_much_longer_passes(name: str, rest: str) -> None:
    check_names([name + rest])
