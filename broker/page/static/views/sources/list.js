// All streams, tables and views.

import { get, queryString } from "../../lib/api.js";
import { usePolled } from "../../lib/polled.js";
import { behindWords } from "../../lib/remarks.js";
import { readOnly } from "../../lib/session.js";
import { count, duration, rate, share } from "../../lib/units.js";
import { Badge, Empty, ErrorBox, Field, Instant } from "../../lib/widgets.js";
import { html, useRef, useState } from "../../vendor/core.js";
import { distance, queriesHref, sourceHref } from "./words.js";

const EVERY_MS = 2_000;
const SHOWN_MAX = 500;

/** Records per second of each source, from two pages of the list. */
const useRates = (page) => {
  const known = useRef({ at_ms: 0, counts: new Map(), rates: new Map() });
  if (page && page.at_ms > known.current.at_ms) {
    const { at_ms, counts } = known.current;
    const elapsed = (page.at_ms - at_ms) / 1_000;
    const rates = new Map();
    for (const one of page.sources) {
      const before = counts.get(one.name);
      if (before !== undefined && one.records !== null) rates.set(one.name, Math.max(0, one.records - before) / elapsed);
    }
    known.current = { at_ms: page.at_ms, counts: new Map(page.sources.map((one) => [one.name, one.records])), rates };
  }
  return known.current.rates;
};

const COLUMNS = [
  ["name", "Source"],
  ["kind", "Kind"],
  ["state", "State"],
  [null, "Records in", true],
  ["now_ms", "NOW (UTC)"],
  [null, "NOW behind", true],
  ["rows", "Rows kept", true],
  [null, "Waiting for NOW", true],
  ["late", "Late", true],
  ["dead_letters", "Dead letters", true],
  ["shed", "Shed", true],
  ["queries", "Queries", true],
];

const Head = ({ sort, onSort }) => html`<thead><tr>
  ${COLUMNS.map(
    ([
      by,
      title,
      number,
    ]) => html`<th key=${title} scope="col" class=${number ? "number" : ""} aria-sort=${by && sort.by === by ? (sort.order === "desc" ? "descending" : "ascending") : undefined}>
      ${by ? html`<button type="button" class="plain" onClick=${() => onSort(by)}>${title}${sort.by === by ? (sort.order === "desc" ? " ↓" : " ↑") : ""}</button>` : title}
    </th>`,
  )}
</tr></thead>`;

/** How far NOW is behind the newest record, short; how far from the clock in the tooltip. */
const Behind = ({ behind_ms, ms, at_ms }) =>
  behind_ms === null ? "–" : html`<span title=${`behind its newest record; NOW is ${distance(ms, at_ms)}`}>${duration(behind_ms)}</span>`;

const warned = (value, shown = count(value)) => (value ? html`<span class="warn">${shown}</span>` : shown);

const Row = ({ one, at_ms, perSecond }) => {
  const lagging = one.lagging?.length ?? 0;
  return html`<tr>
    <th scope="row"><a href=${sourceHref(one.name)}>${one.name}</a></th>
    <td>${one.kind}</td>
    <td><${Badge} title=${one.error?.message}>${one.state}<//>${lagging > 0 && html` <${Badge} state="warn" title=${`unread records in ${lagging} partitions`}>behind<//>`}${one.catching_up && html` <${Badge} state="warn" title=${behindWords(one.catching_up)}>catching up<//>`}</td>
    <td class="number">${one.kind === "view" ? "–" : rate(perSecond ?? null)}</td>
    <td><${Instant} ms=${one.now_ms} /></td>
    <td class="number"><${Behind} behind_ms=${one.behind_ms} ms=${one.now_ms} at_ms=${at_ms} /></td>
    <td class="number">${count(one.rows)}</td>
    <td class="number">${count(one.pending)}</td>
    <td class="number">${warned(one.late)}</td>
    <td class="number">${warned(one.dead_letters)}</td>
    <td class="number">${warned(one.shed)}${one.shedding_share ? html` <span class="warn">(${share(one.shedding_share)} now)</span>` : null}</td>
    <td class="number">${one.queries ? html`<a href=${queriesHref(one.name)}>${count(one.queries)}</a>` : 0}</td>
  </tr>`;
};

export const SourceList = () => {
  const [search, setSearch] = useState("");
  const [sort, setSort] = useState({ by: "name", order: "asc" });
  const asked = { search: search.trim(), sort: sort.by, order: sort.order, limit: SHOWN_MAX };
  const [page, error, again] = usePolled((signal) => get(`sources${queryString(asked)}`, { signal }), [asked], EVERY_MS);
  const rates = useRates(page);
  const last = useRef(null);
  if (page) last.current = page;
  const shown = page ?? last.current;
  const onSort = (by) =>
    setSort((now) => ({
      by,
      order: now.by === by ? (now.order === "asc" ? "desc" : "asc") : ["name", "kind", "state"].includes(by) ? "asc" : "desc",
    }));

  return html`
    <div class="heading">
      <h1>Sources</h1>
      <span class="dim">${shown ? (shown.total > shown.sources.length ? `${count(shown.sources.length)} of ${count(shown.total)}` : count(shown.total)) : ""}</span>
      <div class="tools row">
        <${Field} label="Search">${(id) => html`<input id=${id} type="search" placeholder="name or topic" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} />`}<//>
        ${!readOnly.value && html`<button type="button" class="main" onClick=${() => (location.hash = "#/sources?create=")}>Create a source</button>`}
      </div>
    </div>
    <${ErrorBox} error=${error} retry=${again} />
    ${
      shown &&
      (shown.sources.length
        ? html`<div class="card"><div class="scroll" tabindex="0" role="region" aria-label="Table of sources">
            <table class="sources">
              <${Head} sort=${sort} onSort=${onSort} />
              <tbody>${shown.sources.map((one) => html`<${Row} key=${one.name} one=${one} at_ms=${shown.at_ms} perSecond=${rates.get(one.name)} />`)}</tbody>
            </table>
          </div>
          ${shown.total > shown.sources.length && html`<p class="dim">The first ${count(shown.sources.length)} of ${count(shown.total)} are shown: search for the others.</p>`}</div>`
        : html`<${Empty}>${search ? "No source has this in its name or topic." : "There is no source yet. A stream reads a topic of Kafka; create one, and register queries over it."}<//>`)
    }`;
};
