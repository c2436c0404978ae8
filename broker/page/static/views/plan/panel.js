// What is known of one node: what it uses, its curve, its queries, how rows go through its modules, and its attributes.

import { get, queryString } from "../../lib/api.js";
import { Attributes } from "../../lib/attributes.js";
import { Curve } from "../../lib/curve.js";
import { handleOf } from "../../lib/session.js";
import { filled } from "../../lib/sql.js";
import { bytes, count, duration, rate, share, valued } from "../../lib/units.js";
import { Badge, Bar, Card, Empty, ErrorBox, Tabs, useLoaded } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";
import { titleOf } from "./graph.js";
import { partsOf } from "./model.js";

const QUERIES = 50;
const MEMBERS = 200;
const MODULES_OF = new Set(["query-stem", "join"]);

const Facts = ({ node }) => {
  const [{ entity }] = node.members;
  const { rows_in, rows_out, bytes_in, bytes_out, selectivity, row_cost_ns } = entity.statistics;
  return html`<dl class="facts">
    <dt>rows in</dt><dd>${rate(node.rowsIn)}${node.members.length === 1 ? html` <span class="dim">${count(rows_in)} so far</span>` : null}</dd>
    <dt>rows out</dt><dd>${rate(node.rate)} <span class="dim">${node.members.length > 1 ? null : rows_out ? `${count(rows_out)} so far` : node.rate ? "not counted: what comes goes on" : null}</span></dd>
    <dt>CPU</dt><dd>${share(node.cpu)} of a core <${Bar} value=${node.part} label=${`${share(node.part)} of all nodes' computing time`} /></dd>
    <dt>memory</dt><dd>${bytes(node.bytes)}</dd>
    ${node.queued !== null && html`<dt>queued</dt><dd>${count(node.queued)} rows${node.oldest_ms ? html`, the oldest ${duration(node.oldest_ms)}` : null}</dd>`}
    <dt>shared by</dt><dd>${count(node.queries)} ${node.queries === 1 ? "query" : "queries"}</dd>
    ${node.members.length === 1 && rows_out > 0 && typeof selectivity === "number" && html`<dt>selectivity</dt><dd>${valued(selectivity)} rows out for each that came</dd>`}
    ${node.members.length === 1 && typeof row_cost_ns === "number" && html`<dt>a row costs</dt><dd>${duration(row_cost_ns / 1e6)}</dd>`}
    ${node.members.length === 1 && bytes_in + bytes_out > 0 && html`<dt>bytes</dt><dd>${bytes(bytes_in)} in, ${bytes(bytes_out)} out so far</dd>`}
  </dl>`;
};

const CURVES = [
  { of: ["rows_in_per_s", "rows_out_per_s", "rows_per_s"], label: "Rows" },
  { of: ["memory_bytes", "bytes"], label: "Memory" },
  { of: ["cpu_share"], label: "CPU" },
];

const History = ({ id }) => {
  const [found, error] = useLoaded((signal) => get(`history${queryString({ entity: id })}`, { signal }), [id]);
  if (error) return html`<p class="dim">no curve: ${error.message}</p>`;
  if (!found) return null;
  const shown = CURVES.map(({ of, label }) => ({ label, names: of.filter((name) => found.series[name]) })).filter(
    (one) => one.names.length,
  );
  if (!shown.length || !found.at_ms.length) return html`<p class="dim">its curve begins with the next ${duration(found.every_ms)}</p>`;
  return html`<div class="plan-curves">${shown.map(
    ({ label, names }) => html`<figure key=${label}><figcaption class="dim">${label}, the last hour</figcaption>
      <${Curve} at=${found.at_ms} series=${names.map((name) => ({ name: name.replaceAll("_", " "), values: found.series[name].values }))} unit=${found.series[names[0]].unit} height=${130} label=${`${label} of ${id}`} />
    </figure>`,
  )}</div>`;
};

const Queries = ({ id, total }) => {
  const [found, error, again] = useLoaded(
    (signal) => get(`entities/queries${queryString({ entity: id, limit: QUERIES })}`, { signal }),
    [id, total],
  );
  if (error) return html`<${ErrorBox} error=${error} retry=${again} />`;
  if (!found) return html`<p class="dim">…</p>`;
  if (!found.queries.length) return html`<${Empty}>No query shares it.<//>`;
  return html`<ul class="plan-list">
      ${found.queries.map(
        (one) => html`<li key=${one.query_id}>
          <a href=${`#/plan?query=${one.query_id}`} title="Light up its way">${one.query_id.slice(0, 8)}…</a> <${Badge}>${one.state}<//>
          <code class="text">${one.sql ? filled(one.sql, one.parameters) : "its text is not known"}</code>
        </li>`,
      )}
    </ul>
    ${found.total > found.queries.length && html`<p class="dim">the first ${count(found.queries.length)} of ${count(found.total)}, by id</p>`}`;
};

/** Rows on their way through a Query SteM or a join: of the plan of one of its queries, which tells it for all. */
const Modules = ({ id }) => {
  const [found, error] = useLoaded(
    async (signal) => {
      const { queries } = await get(`entities/queries${queryString({ entity: id, limit: 1 })}`, { signal });
      if (!queries.length) return null;
      const handle = handleOf(queries[0].query_id);
      const plan = await get(`queries/${queries[0].query_id}/plan`, { signal, handle });
      return plan.modules[id.slice(id.indexOf("/") + 1)] ?? [];
    },
    [id],
  );
  if (error) return html`<p class="dim">not known: ${error.message}</p>`;
  if (found === null) return html`<p class="dim">No query shares it, so nothing goes through it.</p>`;
  if (!found.length) return html`<${Empty}>It has no modules.<//>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Modules"><table>
    <thead><tr><th>module</th><th class="number" title="How soon it is visited, the more the sooner">tickets</th><th class="number">visits</th><th class="number">rows</th><th class="number" title="Rows that no query wanted afterwards">killed</th><th class="number" title="Rows for which its predicate is an error">errors</th><th class="number">time</th><th class="number">queries</th></tr></thead>
    <tbody>${found.map(
      (
        one,
      ) => html`<tr key=${one.name}><td>${one.name}</td><td class="number">${one.tickets === null ? "–" : valued(one.tickets)}</td><td class="number">${count(one.visits)}</td><td class="number">${count(one.given)}</td>
        <td class="number">${one.killed < 0 ? "–" : count(one.killed)}</td><td class="number">${count(one.errors)}</td><td class="number">${duration(one.cost / 1e6)}</td><td class="number">${count(one.queries)}</td></tr>`,
    )}</tbody>
  </table></div><p class="dim">In the order of visits, since each came; no tickets where there is no choice.</p>`;
};

const Members = ({ node, onPick }) => html`<ul class="plan-list">
    ${node.members
      .slice(0, MEMBERS)
      .map(
        (one) =>
          html`<li key=${one.id}><button type="button" class="plain small" onClick=${() => onPick(one.id)}>${one.title} ${one.name}</button> <span class="dim">${rate(one.entity.moved?.rows_in ?? 0, "rows")} in, ${bytes(one.entity.statistics.memory_bytes)}</span></li>`,
      )}
  </ul>
  ${node.members.length > MEMBERS && html`<p class="dim">the first ${count(MEMBERS)} of ${count(node.members.length)}</p>`}`;

const Links = ({ title, ids, onPick }) =>
  ids.length > 0 &&
  html`<p><span class="dim">${title}</span> ${ids.slice(0, 12).map((id) => {
    const { title: kind, name } = partsOf(id);
    return html`<button type="button" class="small" key=${id} onClick=${() => onPick(id)}>${kind} ${name}</button> `;
  })}${ids.length > 12 ? html`<span class="dim">and ${count(ids.length - 12)} more</span>` : null}</p>`;

/**
 * The panel of a node. readers: ids of nodes that read it. expected: what the plan of the picked query says of it, or null.
 * onPick(id): another node. onUnfold(node). onClose().
 */
export const Panel = ({ node, readers, expected, onPick, onUnfold, onClose }) => {
  const [tab, setTab] = useState("use");
  const one = node.members.length === 1 ? node.members[0] : null;
  const tabs = [
    { id: "use", title: "Use" },
    { id: "queries", title: "Queries" },
    ...(one && MODULES_OF.has(one.type) ? [{ id: "modules", title: "Modules" }] : []),
    { id: "attributes", title: "Attributes" },
  ];
  const shown = tabs.some((each) => each.id === tab) ? tab : "use";
  const tools = html`<button type="button" class="plain" aria-label="Close the panel" onClick=${onClose}>✕</button>`;
  if (!one)
    return html`<${Card} class="plan-panel" title=${`${titleOf(node)} ${node.name}`} tools=${tools}>
      <p class="dim">Alike in kind and in what they read, so they are drawn as one.</p>
      <button type="button" class="main" onClick=${() => onUnfold(node)}>Open</button>
      <${Facts} node=${node} />
      <${Members} node=${node} onPick=${onPick} />
    <//>`;
  return html`<${Card} class="plan-panel" title=${`${one.title} ${one.name}`} tools=${tools}>
    <p class="dim"><code>${one.id}</code></p>
    <${Tabs} label="About the node" tabs=${tabs} selected=${shown} onSelect=${setTab}>
      ${
        shown === "use"
          ? html`<div class="plan-stack">
              <${Facts} node=${node} />
              ${expected && html`<p><${Badge} state=${expected.expected ? "warn" : "good"}>${expected.pattern}<//> ${expected.text}</p>`}
              <${History} id=${one.id} />
              <${Links} title="reads" ids=${one.inputs} onPick=${onPick} />
              <${Links} title="read by" ids=${readers} onPick=${onPick} />
              ${one.type === "source" && html`<p><a href=${`#/sources/${encodeURIComponent(one.name)}`}>The source ${one.name}</a></p>`}
            </div>`
          : shown === "queries"
            ? html`<${Queries} id=${one.id} total=${node.queries} />`
            : shown === "modules"
              ? html`<${Modules} id=${one.id} />`
              : html`<${Attributes} id=${one.id} />`
      }
    <//>
  <//>`;
};
