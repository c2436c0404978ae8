// The threads that engines run in.

import { count } from "../../lib/units.js";
import { Badge, Card, Empty } from "../../lib/widgets.js";
import { html } from "../../vendor/core.js";

const STATES = { live: "good", recovering: "warn", held: "bad", failed: "bad", fenced: "bad", stopped: "bad" };

export const Shards = ({ now }) => html`<${Card} title="Shards">
  ${now.shards.length === 0 && html`<${Empty}>A shard begins with the first stream.<//>`}
  ${
    now.shards.length > 0 &&
    html`<div class="scroll" tabindex="0" role="region" aria-label="Table of shards">
    <table class="overview-table">
      <thead>
        <tr><th scope="col" class="number">Shard</th><th scope="col">State</th><th scope="col" class="number">Queries</th><th scope="col" class="number">Changes to write</th><th scope="col">Position</th></tr>
      </thead>
      <tbody>
        ${now.shards.map(
          (one) => html`<tr key=${one.shard}>
            <th scope="row" class="number">${one.shard}</th>
            <td>
              <${Badge} state=${one.stall ? "bad" : STATES[one.state]}>${one.state}<//>
              ${one.stall && html`<div>${one.stall.message}</div>${one.stall.hint && html`<div class="dim">${one.stall.hint}</div>`}`}
            </td>
            <td class="number">${count(one.queries)}</td>
            <td class="number">${count(one.changes_waiting)}</td>
            <td><code>${one.position}</code></td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`
  }
<//>`;
