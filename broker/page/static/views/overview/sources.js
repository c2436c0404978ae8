// How far each stream is, and what of it is lost.

import { behindWords } from "../../lib/remarks.js";
import { count, duration, rate, share } from "../../lib/units.js";
import { Badge, Card, Empty } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";

const COLUMNS = [
  { id: "name", title: "Source" },
  { id: "state", title: "State" },
  { id: "behind_ms", title: "NOW behind", number: true },
  { id: "records_per_s", title: "Records in", number: true },
  { id: "rows", title: "Rows kept", number: true },
  { id: "pending", title: "Waiting for NOW", number: true },
  { id: "late", title: "Late", number: true },
  { id: "dead_letters", title: "Dead letters", number: true },
  { id: "queries", title: "Queries", number: true },
];

/** Sources by a column; those of which it is not known last. */
export const sorted = (sources, { by, down }) => {
  const turn = down ? -1 : 1;
  const known = sources.filter((one) => one[by] !== null);
  known.sort((a, b) => turn * (typeof a[by] === "string" ? a[by].localeCompare(b[by]) : a[by] - b[by]) || a.name.localeCompare(b.name));
  return [...known, ...sources.filter((one) => one[by] === null)];
};

const Lost = ({ total, perS, href, of }) =>
  total || perS
    ? html`<a class="warn" href=${href} aria-label=${`${count(total)} ${of}`}>${count(total)}</a>${perS ? html` <span class="dim">${rate(perS)}</span>` : null}`
    : "0";

const Row = ({ one }) => {
  const way = `#/sources/${encodeURIComponent(one.name)}`;
  return html`<tr>
    <th scope="row"><a href=${way}>${one.name}</a>${one.kind === "table" ? html` <span class="dim">table</span>` : null}</th>
    <td>
      <${Badge}>${one.state}<//>
      ${one.lagging.length > 0 && html` <${Badge} state="warn" title=${`partitions ${one.lagging.join(", ")} have records that are not read yet`}>behind<//>`}
      ${one.catching_up && html` <${Badge} state="warn" title=${behindWords(one.catching_up)}>catching up<//>`}
      ${one.shedding_share > 0 && html` <${Badge} state="warn" title="of its records are shed for queries that tolerate it">sheds ${share(one.shedding_share)}<//>`}
    </td>
    <td class="number">${one.behind_ms === null ? html`<span class="dim" title="no row has entered">–</span>` : html`<span title="behind its newest record">${duration(one.behind_ms)}</span>`}</td>
    <td class="number">${rate(one.records_per_s)}</td>
    <td class="number">${count(one.rows)}</td>
    <td class="number">${count(one.pending)}</td>
    <td class="number"><${Lost} total=${one.late} perS=${one.late_per_s} href=${way} of="late rows" /></td>
    <td class="number"><${Lost} total=${one.dead_letters} perS=${one.dead_letters_per_s} href=${way} of="dead letters" /></td>
    <td class="number"><a href=${`#/queries?source=${encodeURIComponent(one.name)}`}>${count(one.queries)}</a></td>
  </tr>`;
};

export const Sources = ({ now }) => {
  const [sort, setSort] = useState({ by: "name", down: false });
  const { sources, sources_total: total } = now;
  const turn = (id) => setSort({ by: id, down: sort.by === id ? !sort.down : id !== "name" });
  return html`<${Card} title="Sources" tools=${html`<a href="#/sources">All sources</a>`}>
    ${sources.length === 0 && html`<${Empty}>No stream stands yet. <a href="#/sources?create=">Create one</a> from a topic.<//>`}
    ${
      sources.length > 0 &&
      html`<div class="scroll" tabindex="0" role="region" aria-label="Table of sources">
      <table class="overview-table">
        <thead>
          <tr>
            ${COLUMNS.map(
              ({
                id,
                title,
                number,
              }) => html`<th key=${id} scope="col" class=${number ? "number" : ""} aria-sort=${sort.by === id ? (sort.down ? "descending" : "ascending") : undefined}>
                <button type="button" class="plain small" onClick=${() => turn(id)}>${title}${sort.by === id ? (sort.down ? " ↓" : " ↑") : ""}</button>
              </th>`,
            )}
          </tr>
        </thead>
        <tbody>${sorted(sources, sort).map((one) => html`<${Row} key=${one.name} one=${one} />`)}</tbody>
      </table>
    </div>`
    }
    ${total > sources.length && html`<p class="dim">The first ${count(sources.length)} of ${count(total)} by name; <a href="#/sources">all of them</a>.</p>`}
  <//>`;
};
