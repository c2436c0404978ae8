// A table of many rows, of which only those in sight are in the document; the rest is asked for page by page.
import { html, useEffect, useRef, useState } from "../vendor/core.js";

const PAGE = 100;
const SPARE = 8;

/**
 * columns: `[{id, title, unit?, render(row), sortable?, wide?, number?}]`. load(offset, limit, signal): `{rows, total}`.
 * version: another value loads anew and keeps the place. sort: `{by, order}`. onSort(by). onOpen(row).
 */
export const Rows = ({ columns, load, version, sort, onSort, onOpen, rowHeight = 34, label, keyOf, height = "60vh" }) => {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [pages, setPages] = useState(new Map());
  const [total, setTotal] = useState(null);
  const [error, setError] = useState(null);
  const shown = Math.ceil((box.current?.clientHeight ?? 600) / rowHeight) + 2 * SPARE;
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
  const until = Math.min(total ?? 0, first + shown);
  const wanted = [...new Set([Math.floor(first / PAGE), Math.floor(Math.max(first, until - 1) / PAGE)])];

  useEffect(() => {
    const abort = new AbortController();
    Promise.all(wanted.map(async (page) => [page, await load(page * PAGE, PAGE, abort.signal)])).then(
      (found) => {
        setPages(new Map(found.map(([page, one]) => [page, one.rows])));
        setTotal(found.at(-1)[1].total);
        setError(null);
      },
      (failed) => failed.name !== "AbortError" && setError(failed),
    );
    return () => abort.abort();
  }, [wanted.join(), version, load]);

  const rows = [];
  for (let place = first; place < until; place++) rows.push([place, pages.get(Math.floor(place / PAGE))?.[place % PAGE] ?? null]);
  const grid = columns.map((one) => one.width ?? (one.wide ? "minmax(16rem, 1fr)" : "minmax(6rem, max-content)")).join(" ");

  return html`
    ${error && html`<p class="refusal" role="alert">${error.message}</p>`}
    <div class="rows" ref=${box} style=${{ height, "--grid": grid }} tabindex="0" role="table" aria-label=${label} aria-rowcount=${(total ?? -1) + 1} onScroll=${(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="head" role="row" aria-rowindex="1">
        ${columns.map(
          (
            one,
          ) => html`<div role="columnheader" key=${one.id} class=${one.number ? "number" : ""} aria-sort=${sort?.by === one.id ? (sort.order === "desc" ? "descending" : "ascending") : undefined}>
            ${one.sortable ? html`<button type="button" class="plain" onClick=${() => onSort(one.id)}>${one.title}${sort?.by === one.id ? (sort.order === "desc" ? " ↓" : " ↑") : ""}</button>` : one.title}
          </div>`,
        )}
      </div>
      <div class="room" style=${{ height: `${(total ?? 0) * rowHeight}px` }}>
        ${rows.map(
          ([
            place,
            row,
          ]) => html`<div role="row" key=${row ? keyOf(row) : place} aria-rowindex=${place + 2} class=${row ? "" : "loading"} style=${{ top: `${place * rowHeight}px`, height: `${rowHeight}px` }} onDblClick=${row && onOpen ? () => onOpen(row) : undefined}>
            ${columns.map((one) => html`<div role="cell" key=${one.id} class=${one.number ? "number" : ""}>${row ? one.render(row) : "…"}</div>`)}
          </div>`,
        )}
      </div>
    </div>`;
};
