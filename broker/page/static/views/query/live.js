// The answer of a query as it changes. A small one is followed row by row; of a large one the first rows are asked for again.

import { get } from "../../lib/api.js";
import { openStream } from "../../lib/stream.js";
import { signal, useEffect, useState } from "../../vendor/core.js";
import { Bag } from "./bag.js";
import { isNumber } from "./values.js";

/** Rows that are shown. */
export const SHOWN_MAX = 1_000;
/** A larger answer is not followed. */
const FOLLOWED_MAX = 20_000;
const POLL_MS = 2_000;
/** The table is drawn no more often. */
const DRAW_MS = 250;
/** How long a change is marked. */
export const MARKED_MS = 1_200;

/**
 * @typedef {{
 *   state: "loading"|"live"|"polling"|"waiting"|"hidden"|"paused"|"pending"|"gone"|"failed", error: any, columns: {name: string, type: string}[],
 *   operator: string|null, rows: import("./bag.js").Row[], total: number, now_ms: number|null, tags: any[], complete_from_ms: number|null,
 *   came: number, went: number, refetched: boolean,
 * }} Frame
 * rows: those that are held, all or the first; total: how many the answer has. came, went: since the view was opened.
 */

/** @type {Frame} */
const NOTHING = {
  state: "loading",
  error: null,
  columns: [],
  operator: null,
  rows: [],
  total: 0,
  now_ms: null,
  tags: [],
  complete_from_ms: null,
  came: 0,
  went: 0,
  refetched: false,
};

/** Holds one answer for a view. `frame` is replaced at most once a frame of the screen. */
export class LiveAnswer {
  frame = signal(NOTHING);
  #id;
  #handle;
  #isOrdered;
  #bag = new Bag();
  #facts = { ...NOTHING };
  #close = () => {};
  #timer = 0;
  #drawing = 0;
  #drawn = 0;
  #closed = false;
  /** Of the last rows of an rstream. @type {number|null} */
  #instant = null;

  /** @param {string} id @param {string} handle @param {boolean} isOrdered its rows have an order, which changes do not tell */
  constructor(id, handle, isOrdered) {
    this.#id = id;
    this.#handle = handle;
    this.#isOrdered = isOrdered;
  }

  /** Look how large it is, then follow it or ask again and again. */
  async begin() {
    this.#stop();
    try {
      const first = await this.#first();
      if (this.#closed) return;
      if (first.rows_total <= FOLLOWED_MAX && !this.#isOrdered) this.#follow();
      else this.#poll(first);
    } catch (error) {
      this.#refused(error);
    }
  }

  close() {
    this.#closed = true;
    this.#stop();
  }

  #stop() {
    this.#close();
    this.#close = () => {};
    clearTimeout(this.#timer);
  }

  #path(rest) {
    return `queries/${encodeURIComponent(this.#id)}/${rest}`;
  }

  #first() {
    return get(this.#path(`snapshot?limit=${SHOWN_MAX}`), { handle: this.#handle });
  }

  #refused(error) {
    if (this.#closed) return;
    if (error.code === "query_paused") this.#wait("paused", error);
    else if (error.code === "query_not_running") this.#wait("pending", error);
    else if (error.status === 404) this.#tell({ state: "gone", error });
    else if (error.status === 0 || error.status === 429 || error.status >= 500) this.#wait("waiting", error);
    else this.#tell({ state: "failed", error });
  }

  #wait(state, error) {
    this.#tell({ state, error });
    this.#timer = setTimeout(() => this.begin(), POLL_MS);
  }

  // --- asked for again and again ---

  #poll(found) {
    const again = async () => {
      if (!document.hidden)
        try {
          const next = await this.#first();
          if (this.#closed) return;
          this.#take(next);
        } catch (error) {
          this.#refused(error);
          return;
        }
      this.#timer = setTimeout(again, POLL_MS);
    };
    this.#bag = new Bag();
    this.#take(found, 0);
    this.#timer = setTimeout(again, POLL_MS);
  }

  #take(found, now = performance.now()) {
    this.#bag.become(found.rows, now);
    const { columns, rows_total: total, now_ms, approximation: tags, complete_from_ms } = found;
    this.#tell({ state: "polling", error: null, operator: null, columns, total, now_ms, tags, complete_from_ms });
  }

  // --- followed ---

  #follow() {
    /** Lines that are true with the ones behind them alone: after a cut they come again. @type {any[]} */
    let parts = [];
    this.#close = openStream(this.#path("changes"), {
      handle: this.#handle,
      onState: (state, error) => {
        if (this.#closed) return;
        parts = [];
        if (state === "open") this.#tell({ state: this.#facts.columns.length ? "live" : "loading", error: null });
        else if (state === "waiting" || state === "hidden") this.#tell({ state, error });
        else if (state === "refused" && error.code === "must_refetch") this.#anew();
        else if (state === "refused") this.#refused(error);
      },
      onEvent: (kind, data) => {
        if (data.columns) this.#facts = { ...this.#facts, columns: data.columns, operator: data.operator };
        if ("complete_from_ms" in data) this.#facts = { ...this.#facts, complete_from_ms: data.complete_from_ms };
        if (kind === "end") return this.#ended(data);
        parts.push(data);
        if (data.more) return undefined;
        if (kind === "snapshot") {
          this.#bag = new Bag();
          for (const { rows } of parts) for (const values of rows) this.#bag.add(values);
        } else if (kind === "changes") this.#fold(parts.length === 1 ? data.changes : parts.flatMap((one) => one.changes));
        parts = [];
        this.#tell({ state: "live", error: null, now_ms: data.now_ms, tags: data.approximation ?? [], total: this.#bag.rows.size });
        if (this.#bag.rows.size > 2 * FOLLOWED_MAX) {
          this.begin();
          return "end";
        }
        return undefined;
      },
    });
  }

  #fold(changes) {
    const now = performance.now();
    const { came, went, operator, columns } = this.#facts;
    if (operator === "rstream") {
      this.#replace(changes, now);
      return;
    }
    const added =
      operator === "dstream" ? changes.map(([, at, values]) => /** @type {[number, number, any[]]} */ ([1, at, values])) : changes;
    const comes = added.filter(([weight]) => weight > 0).length;
    const places = columns.flatMap(({ type }, place) => (isNumber(type) ? [] : [place]));
    const placed = places.length > 0 || this.#bag.rows.size <= 1;
    this.#bag.change(added, placed ? (values) => JSON.stringify(places.map((place) => values[place])) : null, now);
    this.#facts = { ...this.#facts, came: came + comes, went: went + added.length - comes };
  }

  /** Each instant gives the whole answer, in one line or several: that of the last one counts. */
  #replace(changes, now) {
    const last = changes.at(-1)?.[1];
    const rows = changes.filter(([, at]) => at === last).map(([, , values]) => values);
    if (last === this.#instant) for (const values of rows) this.#bag.add(values, now);
    else if (rows.length) this.#bag.become(rows, now);
    this.#instant = last ?? this.#instant;
    this.#facts = { ...this.#facts, came: this.#facts.came + changes.length };
  }

  #ended({ reason, error }) {
    if (reason === "stopping") return undefined; // it comes back, behind the position it has
    if (reason === "must_refetch") this.#anew();
    else if (reason === "unregistered") this.#tell({ state: "gone", error });
    else this.#tell({ state: "failed", error });
    return "end";
  }

  #anew() {
    this.#facts = { ...this.#facts, refetched: true };
    this.begin();
  }

  // --- drawing ---

  #tell(facts) {
    this.#facts = { ...this.#facts, ...facts };
    if (this.#drawing || this.#closed) return;
    const wait = Math.max(0, this.#drawn + DRAW_MS - performance.now());
    this.#drawing = setTimeout(() => (document.hidden ? this.#draw() : requestAnimationFrame(() => this.#draw())), wait);
  }

  #draw() {
    this.#drawing = 0;
    if (this.#closed) return;
    this.#drawn = performance.now();
    this.#bag.forget(this.#drawn - MARKED_MS);
    const rows = [...this.#bag.rows.values(), ...this.#bag.leaving];
    this.frame.value = { ...this.#facts, rows };
    const isMarked = rows.some((row) => row.went || (row.came && row.came > this.#drawn - MARKED_MS));
    if (isMarked) setTimeout(() => this.#tell({}), MARKED_MS);
  }
}

/** The answer of a query while a component is shown. @param {string} id @param {string} handle @param {boolean} isOrdered @param {any} [anew] another value begins anew */
export const useLive = (id, handle, isOrdered, anew = null) => {
  const [live, setLive] = useState(null);
  useEffect(() => {
    const opened = new LiveAnswer(id, handle, isOrdered);
    setLive(opened);
    opened.begin();
    return () => opened.close();
  }, [id, handle, isOrdered, anew]);
  return live?.frame.value ?? NOTHING;
};
