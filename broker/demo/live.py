"""While the flights are replayed: the live view of a terminal, or a line every ten seconds."""

from __future__ import annotations

import time
from itertools import cycle, islice

from rich.console import Console
from rich.live import Live
from rich.text import Text

from broker.demo import screen
from broker.demo.advice import invite, say
from broker.demo.board import BOARD
from broker.demo.bursts import KEY, keys
from broker.demo.promising import RARE
from broker.demo.queries import headlines
from broker.demo.scene import Scene

FRAME_S = 0.25
GLANCE_S = 0.08
TILES_A_FRAME = 2


def wait(scene: Scene, console: Console, as_json: bool) -> None:
    """Until the replay is over, without a view."""
    told = 0.0
    while not scene.replay.done:
        scene.running.check()
        scene.bursts.tick()
        scene.promising.look()
        if not as_json and scene.replay.seconds - told >= 10.0:
            told = scene.replay.seconds
            now = scene.audience.progress()
            console.print(
                Text(f"  {told:3.0f} s  {now.records:,} records, {now.entered:,} rows entered", "dim")
            )
        time.sleep(0.1)


def show(scene: Scene, console: Console) -> None:
    """Until the replay is over, and the query with a preference has been shown to its end."""
    titles = [one.title for one in headlines()]
    found = before = [0] * len(titles)
    drawn = [place for place, one in enumerate(BOARD) if one.drawn]
    tiles = {place: screen.tile(BOARD[place], scene.board.look(place)) for place in drawn}
    turn = cycle(drawn)
    console.print(f"\nThe key {KEY} switches a burst on and off, and so does the page:", style="bold")
    say(console, f"{scene.running.url}/#/changes")
    console.print("Try it from another terminal while this runs:", style="bold")
    invite(console, scene)
    with (
        keys() as pressed,
        Live(console=console, auto_refresh=False, transient=True) as view,
    ):
        while not (over := scene.replay.done) or not scene.promising.ends():
            frame = time.monotonic()
            scene.running.check()
            if pressed.pressed(KEY):
                scene.bursts.switch()
            scene.bursts.tick()
            progress = scene.audience.progress()
            found = [int(scene.audience.look(i).table["flights"][0].as_py()) for i in range(len(titles))]
            for place in islice(turn, TILES_A_FRAME):
                tiles[place] = screen.tile(BOARD[place], scene.board.look(place))
            preferred = screen.promising(RARE.title, scene.promising.look())
            panels = [
                screen.counts(titles, found, before),
                screen.watched(
                    f"a watch-list: {scene.absent.title}", scene.audience.client.snapshot(scene.handle)
                ),
                preferred,
                *tiles.values(),
            ]
            if over:
                panels = [preferred]
            if scene.bursts.count:
                panels.insert(0, screen.burst(scene.bursts))
            scene.audience.glance(GLANCE_S)
            view.update(
                screen.live(
                    console,
                    scene.replay,
                    progress,
                    scene.audience.matches,
                    panels,
                    scene.replay.seconds,
                    f"{scene.running.url}/",
                ),
                refresh=True,
            )
            before = found
            time.sleep(max(0.0, FRAME_S - (time.monotonic() - frame)))
