"""``make screenshots``: pictures of the page for the docs, of a broker with the demo's data.

Starts a Kafka, a broker and Chromium of its own, and writes ``docs/page-*.png``: views in light and dark,
some as a phone shows them.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.broker.running import Broker, broker
from tests.kafka import node
from tests.page.browsing import Troubles, launch, new_page
from tests.page.scene import Scene, scene
from tureen.protocol import query_id

DOCS = Path(__file__).parents[2] / "docs"
DESKTOP = (1360, 850)
PHONE = (390, 780)
COLOURS = 192
"""Colours of the written files: as many as text and curves need."""
BYTES_MAX = 300_000
SETTLE_S = 75.0
"""Until the curves have something to show."""

AIRPORTS = "top ten airports, last day"


@dataclass(frozen=True, slots=True)
class Picture:
    """A file ``page-<name>.png``. path: of the page. ready: waits until all is there."""

    name: str
    path: Callable[[Scene], str]
    ready: Callable[[Page, Scene], None]
    dark: bool = False
    size: tuple[int, int] = DESKTOP


def taken(browser: Browser, service: Broker, found: Scene, picture: Picture) -> bytes:
    """The picture, as PNG."""
    troubles = Troubles(service.url)
    page = new_page(browser, troubles, dark=picture.dark, size=picture.size)
    page.goto(f"/{picture.path(found)}")
    picture.ready(page, found)
    page.evaluate("document.activeElement?.blur?.()")
    data = page.screenshot(animations="disabled")
    page.context.close()
    troubles.check()
    return optimised(data)


def optimised(data: bytes) -> bytes:
    """Reduce a picture to a palette."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    few = image.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    written = io.BytesIO()
    few.save(written, "PNG", optimize=True)
    return written.getvalue()


def live(page: Page, _: Scene) -> None:
    """The page is connected, and has drawn what came first."""
    page.get_by_role("status").get_by_text("live").wait_for()
    page.wait_for_timeout(3_000)


def opened(title: str) -> Callable[[Page, Scene], None]:
    """The answer of a query of the board is shown, by its handle."""

    def ready(page: Page, found: Scene) -> None:
        live(page, found)
        page.get_by_label("Handle").first.fill(found.handle(title))
        page.keyboard.press("Enter")
        page.get_by_role("table").first.wait_for()
        page.wait_for_timeout(4_000)

    return ready


def written(text: str) -> Callable[[Page, Scene], None]:
    """A statement stands in the editor, with its plan beside it."""

    def ready(page: Page, found: Scene) -> None:
        live(page, found)
        page.get_by_role("textbox", name="SQL statements").click()
        page.keyboard.insert_text(text)
        page.wait_for_timeout(4_000)

    return ready


def of_query(title: str) -> Callable[[Scene], str]:
    return lambda found: f"#/queries/{query_id(found.handle(title))}"


JOINED = """SELECT p.manufacturer, COUNT(*) AS flights, AVG(f.arr_delay) AS delay
FROM flights [RANGE 7 DAYS] f JOIN planes p ON p.tailnum = f.tailnum
WHERE f.origin = 'JFK'
GROUP BY p.manufacturer"""

PICTURES = (
    Picture("overview", lambda _: "#/", live),
    Picture("overview-dark", lambda _: "#/", live, dark=True),
    Picture("overview-phone", lambda _: "#/", live, size=PHONE),
    Picture("queries", lambda _: "#/queries", live),
    Picture("query", of_query(AIRPORTS), opened(AIRPORTS)),
    Picture("plan", lambda _: "#/plan", live, dark=True),
    Picture("sources", lambda _: "#/sources/flights", live),
    Picture("changes", lambda _: "#/changes", live),
    Picture("statements", lambda _: "#/statements", written(JOINED)),
)


def main(wanted: Sequence[str], folder: Path = DOCS) -> int:
    """Exit code 1 where a file is too large. wanted: names; none: all."""
    with (
        tempfile.TemporaryDirectory(prefix="tureen-screenshots-") as directory,
        node() as kafka,
        broker(kafka.bootstrap, Path(directory) / "data", f"t{uuid.uuid4().hex[:12]}") as service,
        scene(service, rows=200_000, queries=1_200, followed=600, past=20_000, days_per_s=1.0) as found,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        end = time.monotonic() + float(os.environ.get("TUREEN_SCREENSHOTS_SETTLE_S", SETTLE_S))
        while time.monotonic() < end:
            found.bursts.tick()
            time.sleep(0.1)
        code = 0
        for picture in PICTURES:
            if wanted and picture.name not in wanted:
                continue
            data = taken(browser, service, found, picture)
            path = folder / f"page-{picture.name}.png"
            path.write_bytes(data)
            print(f"{path.relative_to(folder.parent)}: {len(data) // 1_000} kB")
            if len(data) > BYTES_MAX:
                print(f"  that is more than {BYTES_MAX // 1_000} kB", file=sys.stderr)
                code = 1
        browser.close()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
