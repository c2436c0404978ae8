// A table of many rows, of which only those in sight are in the document; the others are asked for when they come in sight.
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../vendor/core.js";
import { ErrorBox } from "./widgets.js";

/** Browsers lay out no box higher than some 17 million px: beyond this one, the scroll bar stands for more rows than it has px. */
const ROOM_MAX_PX = 8_000_000;
/** Rows that are loaded above and below those in sight. */
const SPARE = 50;
/** Rows of one request at most, and rows that are kept. */
const LOAD_MAX = 400;
const KEPT_MAX = 4_000;
/** A place that is scrolled over is loaded when the scrolling rests for so long. */
const REST_MS = 60;
/** The bar is put where the position is when it rests for so long: earlier would end a movement that still goes on. */
const ALIGN_MS = 500;

/** CSS pixels of one rem. */
export const rem = () => Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || 14;
const between = (value, least, most) => Math.max(least, Math.min(most, value));

/**
 * Which rows of a box are in sight, however high all of them are together. `position` is that of the first px in sight among
 * all rows; where these are higher than a box can be, small movements of the scroll bar move by as many px, and long ones in proportion.
 */
class Scroller {
  position = 0;
  #seen = 0;

  constructor() {
    this.box = null;
    this.whole = 0;
    this.sight = 600;
  }

  /** Height of the box in the document. */
  get room() {
    return Math.min(this.whole, ROOM_MAX_PX);
  }

  get #last() {
    return Math.max(0, this.whole - this.sight);
  }

  /** The px of the box at which the first px in sight is drawn. */
  get top() {
    return this.#seen;
  }

  moved(top) {
    const roomLast = Math.max(1, this.room - this.sight);
    if (this.whole <= ROOM_MAX_PX) this.position = top;
    else if (top <= 0) this.position = 0;
    else if (top >= roomLast - 1) this.position = this.#last;
    else if (Math.abs(top - this.#seen) < 2 * this.sight) this.position = between(this.position + top - this.#seen, 0, this.#last);
    else this.position = (top / roomLast) * this.#last;
    this.#seen = top;
  }

  /** Put these px in sight, and the scroll bar where they are. */
  show(position) {
    this.position = between(position, 0, this.#last);
    this.align();
  }

  /** The scroll bar goes where the position is. */
  align() {
    const roomLast = Math.max(0, this.room - this.sight);
    const top = this.whole <= ROOM_MAX_PX ? this.position : (this.position / Math.max(1, this.#last)) * roomLast;
    this.#seen = top;
    if (this.box && Math.abs(this.box.scrollTop - top) >= 1) {
      this.box.scrollTop = top;
      this.#seen = this.box.scrollTop;
    }
  }
}

/**
 * A grid of rows that are loaded as they come in sight. Keys: arrows, Page, Home, End; Enter opens, Space selects.
 *
 * @param {object} given
 * @param {Array<{id: string, title: string, about?: string, render: (row: any) => any, sortable?: boolean, wide?: boolean, number?: boolean, width?: number, header?: any}>} given.columns
 *   width: in rem; a wide one takes what is left.
 * @param {(offset: number, limit: number, signal: AbortSignal, fresh: boolean) => Promise<{rows: any[], total: number, anew?: boolean}>} given.load
 *   fresh: a list of now is wanted, not more of the list before; anew: that was not to be had. Another function is another list.
 * @param {any} [given.version] another value loads what is in sight anew, and keeps the place
 * @param {{by: string, order: string}} [given.sort]
 * @param {(by: string) => void} [given.onSort]
 * @param {(row: any) => void} [given.onOpen]
 * @param {{has: (row: any) => boolean, toggle: (row: any) => void, name: (row: any) => string}} [given.selection]
 * @param {(found: {total: number}) => void} [given.onLoaded]
 * @param {(row: any) => string} given.keyOf
 * @param {string} given.label
 * @param {number} [given.rowHeight] in CSS pixels
 * @param {string} [given.height] of the box, as CSS has it
 * @param {any} [given.empty] what stands where there are no rows
 */
export const Rows = ({
  columns,
  load,
  version,
  sort,
  onSort,
  onOpen,
  selection,
  onLoaded,
  rowHeight,
  label,
  keyOf,
  empty = "Nothing.",
  height = "60vh",
}) => {
  const base = useId();
  const box = useRef(null);
  const [, draw] = useState(0);
  const again = () => draw((now) => now + 1);
  const [scroller] = useState(() => new Scroller());
  const [state] = useState(() => ({
    rows: new Map(),
    total: null,
    error: null,
    loading: null,
    of: null,
    stale: false,
    active: 0,
    timer: 0,
    aligning: 0,
  }));
  const px = rowHeight ?? Math.round(2.3 * rem());
  const total = state.total ?? 0;
  scroller.whole = total * px;

  const first = Math.max(0, Math.floor(scroller.position / px));
  const until = Math.min(total, Math.ceil((scroller.position + scroller.sight) / px));

  /** Load the rows in sight and some around. fresh: even those that are there. */
  const fetchRows = async (fresh) => {
    state.loading?.abort();
    const abort = new AbortController();
    state.loading = abort;
    const inSight = Math.ceil(scroller.sight / px) + 1;
    const offset = Math.max(0, Math.floor(scroller.position / px) - SPARE);
    const limit = Math.min(LOAD_MAX, inSight + 2 * SPARE);
    try {
      const found = await load(offset, limit, abort.signal, fresh);
      if (abort.signal.aborted) return;
      if (fresh || found.anew || state.rows.size > KEPT_MAX) state.rows = new Map();
      for (const [place, row] of found.rows.entries()) state.rows.set(offset + place, row);
      state.total = found.total;
      state.error = null;
      state.stale = false;
      state.active = between(state.active, 0, Math.max(0, found.total - 1));
      onLoaded?.(found);
    } catch (failed) {
      if (abort.signal.aborted || failed.name === "AbortError") return;
      state.error = failed;
    }
    state.loading = null;
    again();
  };

  // Another list begins at its top; what was there stays, dimmed, until the new rows are.
  useEffect(() => {
    if (state.of !== null && state.of !== load) {
      state.stale = true;
      state.active = 0;
      scroller.show(0);
    }
    state.of = load;
    fetchRows(true);
    again();
  }, [load]);
  useEffect(() => {
    if (!state.loading && state.total !== null) fetchRows(true);
  }, [version]);
  useEffect(
    () => () => {
      state.loading?.abort();
      clearTimeout(state.timer);
      clearTimeout(state.aligning);
    },
    [],
  );
  useEffect(() => {
    const watch = new ResizeObserver(() => {
      if (!box.current) return;
      scroller.sight = Math.max(px, box.current.clientHeight - headOf(box.current));
      scroller.align();
      again();
    });
    scroller.box = box.current;
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => scroller.box && scroller.align(), [total, px]);

  /** What is in sight and not there is loaded once the scrolling rests. */
  const rest = () => {
    clearTimeout(state.timer);
    clearTimeout(state.aligning);
    state.aligning = setTimeout(() => scroller.align(), ALIGN_MS);
    state.timer = setTimeout(() => {
      const from = Math.floor(scroller.position / px);
      const to = Math.min(state.total ?? 0, Math.ceil((scroller.position + scroller.sight) / px));
      for (let place = from; place < to; place++)
        if (!state.rows.has(place)) {
          fetchRows(false);
          break;
        }
    }, REST_MS);
  };

  const onScroll = (event) => {
    if (Math.abs(event.currentTarget.scrollTop - scroller.top) < 1) return;
    scroller.moved(event.currentTarget.scrollTop);
    rest();
    again();
  };

  const go = (place) => {
    state.active = between(place, 0, Math.max(0, total - 1));
    const top = state.active * px;
    if (top < scroller.position) scroller.show(top);
    else if (top + px > scroller.position + scroller.sight) scroller.show(top + px - scroller.sight);
    rest();
    again();
  };

  const onKeyDown = (event) => {
    if (event.target !== box.current || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(scroller.sight / px) - 1);
    const to = {
      ArrowDown: state.active + 1,
      ArrowUp: state.active - 1,
      PageDown: state.active + page,
      PageUp: state.active - page,
      Home: 0,
      End: total - 1,
    }[event.key];
    const row = state.rows.get(state.active);
    if (to !== undefined) go(to);
    else if (event.key === "Enter" && row !== undefined && onOpen) onOpen(row);
    else if (event.key === " " && row !== undefined && selection) selection.toggle(row);
    else return;
    event.preventDefault();
  };

  const shown = [];
  for (let place = Math.max(0, first - 3); place < Math.min(total, until + 3); place++) shown.push(place);
  const all = selection ? [selectionColumn(selection), ...columns] : columns;
  const grid = all.map((one) => (one.wide ? `minmax(${one.width ?? 18}rem, 1fr)` : `${one.width ?? 7}rem`)).join(" ");
  const least = all.reduce((sum, one) => sum + (one.width ?? (one.wide ? 18 : 7)), 0.75 * (all.length - 1) + 1.2);
  const idOf = (place) => `${base}-${place}`;
  const drawn = scroller.whole <= ROOM_MAX_PX ? 0 : scroller.top - scroller.position;

  return html`
    <${ErrorBox} error=${state.error} retry=${() => fetchRows(true)} />
    <div
      class=${`rows ${state.stale || state.error ? "stale" : ""}`}
      ref=${box}
      style=${{ height, "--grid": grid, "--least": `${least}rem` }}
      tabindex="0"
      role="grid"
      aria-label=${label}
      aria-readonly="true"
      aria-multiselectable=${selection ? "true" : undefined}
      aria-busy=${state.stale || state.total === null ? "true" : "false"}
      aria-rowcount=${state.total === null ? -1 : total + 1}
      aria-colcount=${all.length}
      aria-activedescendant=${shown.includes(state.active) ? idOf(state.active) : undefined}
      onScroll=${onScroll}
      onKeyDown=${onKeyDown}
    >
      <div class="head" role="row" aria-rowindex="1">
        ${all.map(
          (
            one,
          ) => html`<div role="columnheader" key=${one.id} class=${one.number ? "number" : ""} title=${one.about} aria-sort=${sort?.by === one.id ? (sort.order === "desc" ? "descending" : "ascending") : undefined}>
            ${
              one.sortable
                ? html`<button type="button" class="plain" onClick=${() => onSort(one.id)}>${one.title}<span class="arrow" aria-hidden="true">${sort?.by === one.id ? (sort.order === "desc" ? "↓" : "↑") : ""}</span></button>`
                : (one.header ?? one.title)
            }
          </div>`,
        )}
      </div>
      ${
        total > 0 &&
        html`<div class="room" role="rowgroup" style=${{ height: `${scroller.room}px` }}>
          ${shown.map((place) => {
            const row = state.rows.get(place);
            return html`<div
              role="row"
              id=${idOf(place)}
              key=${row === undefined ? `place ${place}` : (keyOf(row) ?? place)}
              aria-rowindex=${place + 2}
              aria-selected=${selection ? (row !== undefined && selection.has(row) ? "true" : "false") : undefined}
              class=${`${row === undefined ? "waiting" : ""} ${place === state.active ? "active" : ""}`}
              style=${{ top: `${place * px + drawn}px`, height: `${px}px` }}
              onMouseDown=${() => {
                state.active = place;
                again();
              }}
              onDblClick=${row !== undefined && onOpen ? () => onOpen(row) : undefined}
            >
              ${all.map((one) => html`<div role="gridcell" key=${one.id} class=${one.number ? "number" : ""}>${row === undefined ? html`<span class="blank"></span>` : one.render(row)}</div>`)}
            </div>`;
          })}
        </div>`
      }
      ${state.total === 0 && html`<div role="row" class="none"><div role="gridcell">${empty}</div></div>`}
      ${state.total === null && !state.error && html`<div role="row" class="none"><div role="gridcell">Loading…</div></div>`}
    </div>`;
};

const headOf = (box) => box.querySelector(".head")?.offsetHeight ?? 0;

/** @returns {{id: string, title: string, about?: string, render: (row: any) => any, sortable?: boolean, wide?: boolean, number?: boolean, width?: number, header?: any}} */
const selectionColumn = ({ has, toggle, name }) => ({
  id: "selected",
  title: "Selected",
  header: html`<span class="visually-hidden">Selected</span>`,
  width: 1.4,
  render: (row) =>
    name(row) &&
    html`<input type="checkbox" tabindex="-1" aria-label=${`Select ${name(row)}`} checked=${has(row)} onChange=${() => toggle(row)} />`,
});
