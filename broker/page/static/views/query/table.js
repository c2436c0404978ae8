// An answer as a table: sorted by a column, with what came and went marked.

import { count } from "../../lib/units.js";
import { Empty } from "../../lib/widgets.js";
import { html, useMemo, useState } from "../../vendor/core.js";
import { MARKED_MS, SHOWN_MAX } from "./live.js";
import { comparator, isNumber, Value } from "./values.js";

/** Which rows are shown, in which order. @param {import("./bag.js").Row[]} rows @param {{name: string, type: string}[]} columns @param {{by: number|null, order: string}} sort */
export const ordered = (rows, columns, { by, order }) => {
  const sign = order === "desc" ? -1 : 1;
  if (by === null || by >= columns.length) return order === "desc" ? rows.toReversed().slice(0, SHOWN_MAX) : rows.slice(0, SHOWN_MAX);
  const compare = comparator(columns[by].type);
  const isNull = (row) => row.values[by] === null;
  return rows
    .toSorted(
      (one, other) =>
        (isNull(one) || isNull(other) ? compare(one.values[by], other.values[by]) : sign * compare(one.values[by], other.values[by])) ||
        one.serial - other.serial,
    )
    .slice(0, SHOWN_MAX);
};

const markOf = (row, now) => (row.went ? "went" : row.came && row.came > now - MARKED_MS ? (row.was ? "changed" : "came") : "");

const Head = ({ columns, sort, onSort }) => html`<thead><tr>
  ${columns.map(({ name, type }, place) => {
    const isBy = sort.by === place;
    return html`<th key=${place} scope="col" class=${isNumber(type) ? "number" : ""} aria-sort=${isBy ? (sort.order === "desc" ? "descending" : "ascending") : undefined}>
      <button type="button" class="plain" title=${`Sort by ${name} (${type})`} onClick=${() => onSort(place)}>${name}${isBy ? (sort.order === "desc" ? " ↓" : " ↑") : ""}</button>
      <span class="type">${type.toLowerCase()}</span>
    </th>`;
  })}
</tr></thead>`;

/**
 * rows: of a bag. total: how many rows the answer has. newestFirst: the order until one sorts. marks: whether what came and went is marked.
 */
export const AnswerTable = ({ columns, rows, total, label, newestFirst = false, marks = true }) => {
  const [sort, setSort] = useState({ by: null, order: null });
  const shape = { by: sort.by, order: sort.order ?? (newestFirst ? "desc" : "asc") };
  const shown = useMemo(() => ordered(rows, columns, shape), [rows, columns, shape.by, shape.order]);
  const onSort = (by) =>
    setSort((now) =>
      now.by !== by
        ? { by, order: isNumber(columns[by].type) ? "desc" : "asc" }
        : now.order === "desc"
          ? { by, order: "asc" }
          : { by, order: "desc" },
    );
  const now = performance.now();
  const held = rows.filter((row) => !row.went).length;
  return html`
    <div class="row between">
      <p class="dim" data-count=${total}>${
        total <= Math.min(SHOWN_MAX, held)
          ? `${count(total)} ${total === 1 ? "row" : "rows"}`
          : `${sort.by === null && newestFirst ? "the newest" : "first"} ${count(Math.min(SHOWN_MAX, held))} of ${count(total)} rows${held < total && sort.by !== null ? ", sorted among themselves" : ""}`
      }</p>
      ${sort.by !== null && html`<button type="button" class="small" onClick=${() => setSort({ by: null, order: null })}>Order of the answer</button>`}
    </div>
    <div class="scroll query-answer" tabindex="0" role="region" aria-label=${label}>
      <table>
        <${Head} columns=${columns} sort=${shape.by === null ? { by: null } : shape} onSort=${onSort} />
        <tbody>${shown.map((row) => html`<${Line} key=${`${row.serial}${row.went ? "-" : ""}`} row=${row} columns=${columns} mark=${marks ? markOf(row, now) : ""} />`)}</tbody>
      </table>
      ${!shown.length && html`<${Empty}>The answer has no rows now.<//>`}
    </div>`;
};

const cellClass = (row, type, place, mark) =>
  `${isNumber(type) ? "number" : ""}${mark === "changed" && row.was[place] !== row.values[place] ? " new" : ""}`;

const Line = ({ row, columns, mark }) =>
  useMemo(
    () =>
      html`<tr class=${mark}>${columns.map(({ type }, place) => html`<td key=${place} class=${cellClass(row, type, place, mark)}><${Value} value=${row.values[place]} type=${type} /></td>`)}</tr>`,
    [row, columns, mark],
  );
