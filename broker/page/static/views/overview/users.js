// Which parts of the engines use most of the time, and most of the memory.

import { entities, entitiesError, movedAt, useEntities } from "../../lib/entities.js";
import { bytes, count, rate, share } from "../../lib/units.js";
import { Bar, Card, Empty, ErrorBox } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";

const SHOWN = 10;
const NS_PER_S = 1e9;

const cpu = (one) => (one.moved.cpu_ns ?? 0) / NS_PER_S;
const memory = (one) => one.statistics.memory_bytes ?? 0;

const wayTo = (id) => {
  const [, kind, ...name] = id.split("/");
  return kind === "source" ? `#/sources/${encodeURIComponent(name.join("/"))}` : `#/plan?entity=${encodeURIComponent(id)}`;
};

/** The entities that use most by a measure, those that use anything. */
export const heaviest = (all, measure) =>
  [...all]
    .filter((one) => measure(one) > 0)
    .sort((a, b) => measure(b) - measure(a) || a.id.localeCompare(b.id))
    .slice(0, SHOWN);

export const Users = () => {
  useEntities();
  const [by, setBy] = useState("memory");
  const measure = by === "cpu" ? cpu : memory;
  const all = [...entities.value.values()];
  const rows = heaviest(all, measure);
  const most = rows.length ? measure(rows[0]) : 0;
  const tools = html`<div role="group" aria-label="By">
    <button type="button" class="small" aria-pressed=${by === "memory"} onClick=${() => setBy("memory")}>Memory</button>${" "}
    <button type="button" class="small" aria-pressed=${by === "cpu"} onClick=${() => setBy("cpu")}>CPU</button>
  </div>`;
  return html`<${Card} title="What uses most" tools=${tools}>
    <${ErrorBox} error=${entitiesError.value} />
    ${rows.length === 0 && html`<${Empty}>${by === "cpu" && movedAt.value ? "Nothing worked in the last second." : "Nothing is used yet."}<//>`}
    ${
      rows.length > 0 &&
      html`<div class="scroll" tabindex="0" role="region" aria-label="Table of what uses most">
      <table class="overview-table overview-users">
        <thead>
          <tr><th scope="col">Entity</th><th scope="col">Kind</th><th scope="col" class="number">${by === "cpu" ? "Of a core" : "Bytes"}</th><th scope="col" class="share"><span class="visually-hidden">Compared</span></th><th scope="col" class="number">Rows in</th><th scope="col" class="number">Queries</th></tr>
        </thead>
        <tbody>
          ${rows.map(
            (one) => html`<tr key=${one.id}>
              <th scope="row"><a href=${wayTo(one.id)}>${one.id}</a></th>
              <td>${one.kind}</td>
              <td class="number">${by === "cpu" ? share(cpu(one)) : bytes(memory(one))}</td>
              <td class="share"><${Bar} value=${most ? measure(one) / most : 0} label="compared with the most" /></td>
              <td class="number">${rate(one.moved.rows_in ?? 0)}</td>
              <td class="number">${count(one.statistics.queries)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`
    }
    ${all.length > 0 && html`<p class="dim">${rows.length < all.length ? `The first ${rows.length} of ` : ""}${count(all.length)} that are no queries. Who pays: <a href=${by === "cpu" ? "#/queries?sort=cpu_share" : "#/queries?sort=memory_bytes"}>queries</a>.</p>`}
  <//>`;
};
