// All standing queries: searched, sorted and grouped by the broker, of which the rows in sight are here.

import { get, queryString } from "../lib/api.js";
import { Rows, rem } from "../lib/rows.js";
import { me, readOnly } from "../lib/session.js";
import { live, status } from "../lib/status.js";
import { count, instant, local } from "../lib/units.js";
import { Empty } from "../lib/widgets.js";
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../vendor/core.js";
import { Actions } from "./queries/actions.js";
import { QUERY_COLUMNS, SHAPE_COLUMNS } from "./queries/columns.js";
import { Filters, ShapeChip } from "./queries/filters.js";

const REFRESH_MS = 2_000;
/** Of a row: texts take two lines, since many begin alike and differ in their conditions. */
const ROW_REM = 3.2;
const WANTED = ["search", "state", "source", "maintenance", "shape"];
/** Figures: of these the greatest are of interest first. */
const DESCENDING = new Set(["rows_per_s", "matches", "memory_bytes", "cpu_share", "behind_ms", "queries", "running"]);

/** Change the address without leaving the view: it can be shared, and Back leaves the view. */
const readdress = (params, changes) => {
  const now = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) value ? now.set(name, value) : now.delete(name);
  const text = now.toString();
  history.replaceState(null, "", `#/queries${text ? `?${text}` : ""}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
};

const Clock = ({ ms }) =>
  html`<time title=${`${instant(ms)} UTC, ${local(ms)}`} datetime=${new Date(ms).toISOString()}>${new Date(ms).toISOString().slice(11, 19)}</time>`;

/** A number that changes every two seconds while the page is seen, the broker answers, and nothing is to be held still. */
const useTicks = (still) => {
  const [ticks, setTicks] = useState(0);
  useEffect(() => {
    if (still) return undefined;
    const timer = setInterval(
      () => document.visibilityState === "visible" && (live.peek() || status.peek() === null) && setTicks((now) => now + 1),
      REFRESH_MS,
    );
    return () => clearInterval(timer);
  }, [still]);
  return [ticks, () => setTicks((now) => now + 1)];
};

export const QueriesView = ({ route: { params } }) => {
  const byShape = params.get("by") === "shape";
  const wanted = Object.fromEntries(WANTED.map((name) => [name, params.get(name) ?? ""]));
  const fallback = byShape ? { by: "queries", order: "desc" } : { by: "id", order: "asc" };
  const sort = { by: params.get("sort") ?? fallback.by, order: params.get("order") ?? fallback.order };
  const [found, setFound] = useState({ total: null, as_of_ms: null, queries_total: null });
  const [still, setStill] = useState(false);
  const [ticks, refresh] = useTicks(still);
  const [selected, setSelected] = useState(() => new Map());
  const paging = useRef(null);
  const change = (changes) => readdress(params, changes);

  const asked = JSON.stringify({ ...wanted, sort: sort.by, order: sort.order });
  const load = useCallback(
    async (offset, limit, signal, fresh) => {
      const of = JSON.parse(asked);
      if (byShape) {
        const page = await get(`shapes${queryString({ ...of, offset, limit })}`, { signal });
        setFound(page);
        return { rows: page.shapes, total: page.total };
      }
      const token = fresh ? null : paging.current;
      const page = await get(`queries${queryString({ ...of, offset, limit, paging: token })}`, { signal });
      paging.current = page.paging;
      setFound(page);
      return { rows: page.queries, total: page.total, anew: token !== null && token !== page.paging };
    },
    [asked, byShape],
  );

  const onSort = (by) => {
    const first = DESCENDING.has(by) ? "desc" : "asc";
    const other = first === "desc" ? "asc" : "desc";
    change({ sort: by, order: sort.by === by && sort.order === first ? other : first });
  };

  const selectable = !byShape && !readOnly.value && me.value?.operator === true;
  const selection = useMemo(
    () =>
      selectable
        ? {
            has: (row) => selected.has(row.query_id),
            name: (row) => row.query_id,
            toggle: (row) =>
              row.query_id &&
              setSelected((before) => {
                const now = new Map(before);
                now.delete(row.query_id) || now.set(row.query_id, row.sql);
                return now;
              }),
          }
        : undefined,
    [selectable, selected],
  );

  const open = (row) => {
    if (byShape) change({ by: "", shape: row.shape, sort: "", order: "" });
    else if (row.query_id) location.hash = `#/queries/${encodeURIComponent(row.query_id)}`;
  };
  const states = status.value?.queries ?? {};
  const all = Object.values(states).reduce((sum, of) => sum + of, 0);
  const filtered = WANTED.some((name) => wanted[name]);

  return html`
    <div class="heading">
      <h1>Queries</h1>
      <span class="dim" role="status">${found.total === null ? "" : byShape ? `${count(found.total)} shapes of ${count(found.queries_total)} queries` : filtered ? `${count(found.total)} found${all ? ` of ${count(all)}` : ""}` : `${count(found.total)} in all`}</span>
      <div class="tools">
        ${found.as_of_ms && html`<span class="dim">figures of <${Clock} ms=${found.as_of_ms} /> UTC</span>`}
        <button type="button" class="small" aria-pressed=${still} title="Rows and figures stay as they are until this is released" onClick=${() => setStill(!still)}>Hold still</button>
        <button type="button" class="small" aria-pressed=${byShape} title="Group queries by their text without constants" onClick=${() => change({ by: byShape ? "" : "shape", shape: "", sort: "", order: "" })}>By shape</button>
      </div>
    </div>
    <${Filters} wanted=${wanted} change=${change} byShape=${byShape} />
    ${wanted.shape && !byShape && html`<${ShapeChip} shape=${wanted.shape} clear=${() => change({ shape: "" })} />`}
    ${selectable && html`<${Actions} selected=${selected} setSelected=${setSelected} wanted=${wanted} total=${found.total} done=${refresh} />`}
    <${Rows}
      key=${byShape}
      columns=${byShape ? SHAPE_COLUMNS : QUERY_COLUMNS}
      load=${load}
      version=${ticks}
      sort=${sort}
      onSort=${onSort}
      onOpen=${open}
      selection=${selection}
      rowHeight=${Math.round(ROW_REM * rem())}
      keyOf=${(row) => (byShape ? row.shape : row.query_id)}
      label=${byShape ? "Shapes of queries" : "Queries"}
      height="max(18rem, calc(100vh - 17rem))"
      empty=${html`<${Empty}>${filtered ? "No query is like that." : html`No query is registered yet. <a href="#/statements">Register one</a>.`}<//>`}
    />`;
};
