"""The table of rows by itself: more of them than a box can be high, slow and refused loads."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.kafka import wait_until

ROWS = 3_000_000
"""Number of rows: at 32 px and more they are some 100 million px high, where browsers lay out 17 to 33
million.
"""

_SHOW = """async (total) => {
  const { html, render } = await import("/page/vendor/core.js");
  const { Rows } = await import("/page/lib/rows.js");
  window.loads = [];
  window.answer = async (offset, limit) => {
    const length = Math.min(limit, total - offset);
    return { total, rows: Array.from({ length }, (_, at) => offset + at) };
  };
  const load = async (offset, limit, signal, fresh) => {
    window.loads.push({ offset, limit, fresh });
    return window.answer(offset, limit);
  };
  const columns = [{ id: "n", title: "Number", wide: true, render: (row) => `row ${row}` }];
  const place = document.querySelector("main");
  const fixed = { columns, load, keyOf: String, label: "Numbers", height: "400px", rowHeight: 33 };
  const draw = (version) => render(html`<${Rows} ...${fixed} version=${version} />`, place);
  window.again = draw;
  place.replaceChildren();
  draw(0);
}"""


def shown(opened: Callable[..., Page], total: int = ROWS) -> tuple[Page, Locator]:
    page = opened("/docs")
    page.evaluate("() => document.body.replaceChildren(document.createElement('main'))")
    page.add_style_tag(url="/page/style.css")
    page.evaluate(_SHOW, total)
    table = page.get_by_role("grid")
    expect(table).to_contain_text("row 0")
    return page, table


def in_sight(page: Page) -> list[int]:
    """The numbers of the rows that are wholly in sight, checked against their places."""
    found: list[list[int]] = page.evaluate(
        """() => {
          const end = document.querySelector(".rows").getBoundingClientRect().bottom;
          const begin = document.querySelector(".rows .head").getBoundingClientRect().bottom;
          const isWhole = ({ top, bottom }) => top >= begin - 2 && bottom <= end + 1;
          return [...document.querySelectorAll(".rows .room > [role=row]:not(.waiting)")]
            .filter((row) => isWhole(row.getBoundingClientRect()))
            .map((row) => [Number(row.textContent.slice(4)), Number(row.getAttribute("aria-rowindex")) - 2]);
        }"""
    )
    assert all(number == place for number, place in found)
    return sorted(number for number, _ in found)


def test_millions_of_rows_are_reached_by_key_wheel_and_bar(opened: Callable[..., Page]) -> None:
    page, table = shown(opened)
    expect(table).to_have_attribute("aria-rowcount", str(ROWS + 1))
    assert page.evaluate("document.querySelector('.rows .room').offsetHeight") < 17_000_000
    table.focus()
    page.keyboard.press("End")
    expect(table).to_contain_text(f"row {ROWS - 1}")
    assert in_sight(page)[-1] == ROWS - 1
    page.keyboard.press("ArrowUp")
    expect(table.locator(".active")).to_have_text(f"row {ROWS - 2}")
    table.evaluate("(box) => { box.scrollTop = box.scrollHeight / 2; }")
    expect(table.locator(".room > [role=row]").first).to_contain_text(re.compile("row 1[45]"))
    expect(table.locator(".waiting")).to_have_count(0)
    middle = in_sight(page)
    assert abs(middle[0] - ROWS / 2) < ROWS / 1_000
    assert middle == list(range(middle[0], middle[0] + len(middle)))
    table.hover()
    page.mouse.wheel(0, 33 * 5)
    # a turn of the wheel moves by px, not by its share of the bar
    wait_until(lambda: (in_sight(page) or [0])[0] == middle[0] + 5, what="five rows further")
    page.keyboard.press("Home")
    expect(table).to_contain_text("row 0")
    assert in_sight(page)[0] == 0


def test_rows_stay_while_they_are_loaded_anew_and_a_refusal_is_told(opened: Callable[..., Page]) -> None:
    page, table = shown(opened, 10_000)
    table.evaluate("(box) => { box.scrollTop = 33 * 5_000; }")
    expect(table).to_contain_text("row 5000")
    page.evaluate(
        """() => {
          window.before = window.answer;
          const slow = (...given) => new Promise((go) => { window.go = () => go(window.before(...given)); });
          window.answer = slow;
          window.again(1);
        }"""
    )
    page.wait_for_function("() => window.go && window.loads.at(-1).fresh")
    assert in_sight(page)[0] == 5_000  # nothing flickers meanwhile
    page.evaluate("() => { window.answer = window.before; window.go(); }")
    loads = page.evaluate("() => window.loads.length")
    page.evaluate(
        "() => { window.answer = async () => { throw new Error('it is away'); }; window.again(2); }"
    )
    expect(page.get_by_role("alert")).to_contain_text("it is away")
    assert in_sight(page)[0] == 5_000
    page.evaluate("() => { window.answer = window.before; }")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert page.evaluate("() => window.loads.length") == loads + 2
    assert page.evaluate("() => window.loads.every(({ limit }) => limit <= 400)")
