"""When rows are written again: the pace, and a replay with a clock that only goes when somebody waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from spark_jobs.sources.pacing import Pace, Warp
from spark_jobs.sources.replay import Reached, Turn, replay
from tureen.errors import KafkaUnavailable, SettingsError

HOUR_MS = 3_600_000


class World:
    """A clock, a stop that goes with it, and a topic. send_s: how long each record takes."""

    def __init__(
        self, *, stop_at_s: float = float("inf"), send_s: float = 0.0, lost_after: int = 10**9
    ) -> None:
        self.now_s = 100.0
        self.stop_at_s = stop_at_s + self.now_s
        self.send_s = send_s
        self.lost_after = lost_after
        self.written: list[tuple[float, bytes | None]] = []
        self.flushed = 0
        self.told: list[Reached] = []

    def clock(self) -> float:
        return self.now_s

    @property
    def asked(self) -> bool:
        return self.now_s >= self.stop_at_s

    def wait(self, timeout_s: float) -> bool:
        self.now_s = min(self.now_s + timeout_s, max(self.now_s, self.stop_at_s))
        return self.asked

    def send(self, topic: str, value: bytes | None, key: bytes | None = None) -> None:
        self.written.append((self.now_s - 100.0, value))
        self.now_s += self.send_s

    def flush(self) -> None:
        if len(self.written) > self.lost_after:
            raise KafkaUnavailable("gone", hint="is it running?")
        self.flushed = len(self.written)

    def run(self, at_ms: list[int], speed: float | None) -> Reached:
        turns = (Turn(at, "t", None, str(at).encode()) for at in at_ms)
        return replay(turns, Pace(speed, self.clock), self, self, self.clock, self.told.append)


def test_rows_come_in_event_time_divided_by_the_speed() -> None:
    world = World()
    reached = world.run([5_000, 5_000, 65_000, 65_001, 3_605_000], speed=60)
    assert [s for s, _ in world.written] == pytest.approx([0, 0, 1, 1 + 0.001 / 60, 60])
    assert reached == Reached(5, 5_000, 3_605_000, stopped=False, behind_s=pytest.approx(0, abs=1e-6))
    assert world.flushed == 5


def test_without_a_speed_nobody_waits() -> None:
    world = World()
    world.run([0, HOUR_MS, 2 * HOUR_MS], speed=None)
    assert world.now_s == 100.0


def test_a_writer_that_fell_behind_catches_up_and_is_not_shifted() -> None:
    world = World(send_s=3.0)
    reached = world.run([0, 1_000, 2_000, 20_000], speed=1)
    assert [s for s, _ in world.written] == [0, 3, 6, 20]
    assert reached.behind_s == 3.0
    assert max(told.behind_s for told in world.told) == 7.0  # the third row's turn was at 2, it was sent by 9


def test_a_row_older_than_the_first_has_its_turn_at_once() -> None:
    pace = Pace(2.0, lambda: 7.0)
    assert pace.wait_s(10_000) == 0
    assert pace.wait_s(4_000) == 0
    assert pace.wait_s(12_000) == 1.0


def test_a_stop_ends_between_two_rows_and_says_where() -> None:
    world = World(stop_at_s=90.0)
    reached = world.run([0, 60_000, 120_000, 180_000], speed=1)
    assert [value for _, value in world.written] == [b"0", b"60000"]
    assert reached == Reached(2, 0, 60_000, stopped=True, behind_s=30.0)
    assert world.now_s == 190.0  # not a moment later
    assert world.told[-1] == reached


def test_rows_are_confirmed_before_a_wait_and_what_was_is_told_when_kafka_goes() -> None:
    world = World(lost_after=2)
    with pytest.raises(KafkaUnavailable) as caught:
        world.run([0, 1_000, 2_000], speed=1)
    assert caught.value.hint == ("2 rows, up to 1970-01-01 00:00:01.000, are on the topic; is it running?")
    assert [told.rows for told in world.told] == [1, 2]


def test_nothing_to_replay() -> None:
    assert World().run([], speed=1) == Reached()


def test_rows_are_asked_for_no_earlier_than_they_are_needed() -> None:
    """A pace of hours must not hold the rows of hours in memory."""
    world = World(stop_at_s=HOUR_MS / 1_000 * 1.5)
    asked: list[int] = []

    def turns() -> Iterator[Turn]:
        for hour in range(10):
            asked.append(hour)
            yield Turn(hour * HOUR_MS, "t", None, b"")

    replay(turns(), Pace(1.0, world.clock), world, world, world.clock, lambda _: None)
    assert asked == [0, 1, 2]


@pytest.mark.parametrize("make", [lambda: Warp(0.0), lambda: Warp(-1.0), lambda: Warp(float("nan"))])
def test_a_speed_that_is_none(make: Callable[[], Warp]) -> None:
    with pytest.raises(SettingsError, match="speed"):
        make()


def test_how_far_timestamps_move() -> None:
    assert Warp(shift_to_ms=1_000).shift_ms(400) == 600
    assert Warp().shift_ms(400) == 0
    assert Warp(shift_to_ms=1_000).shift_ms(None) == 0
