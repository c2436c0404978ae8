"""Names of options: those that look like an option and are none are refused, all others pass."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from broker.worker.options import PAUSED_BECAUSE, SETTABLE, check, check_names
from tureen.errors import OptionRefused

LETTERS = st.sampled_from("abcdefghijklmnopqrstuvwxyz_")


@st.composite
def slips(draw: st.DrawFn) -> tuple[str, str]:
    """The name of an option, and the name with a letter that is left out, doubled, another, or behind the
    next one.
    """
    name = draw(st.sampled_from(SETTABLE))
    at = draw(st.integers(0, len(name) - 2))
    before, letter, following, behind = name[:at], name[at], name[at + 1], name[at + 2 :]
    forms = (
        before + following + behind,
        before + letter + letter + following + behind,
        before + draw(LETTERS) + following + behind,
        before + following + letter + behind,
    )
    return name, draw(st.sampled_from(forms))


@given(slips())
def test_a_slip_is_refused_and_the_hint_has_the_name(pair: tuple[str, str]) -> None:
    name, slip = pair
    assume(slip not in SETTABLE)
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
