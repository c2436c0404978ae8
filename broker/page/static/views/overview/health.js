// Whether the broker is well: the reasons why it is not ready, what is degraded, and what to do about it.

import { connection } from "../../lib/status.js";
import { count } from "../../lib/units.js";
import { Badge, Card } from "../../lib/widgets.js";
import { html } from "../../vendor/core.js";

/** What a trouble is of, with the way there. */
const Of = ({ one }) => {
  if (one.stream) return html`<a href=${`#/sources/${encodeURIComponent(one.stream)}`}>${one.stream}</a>`;
  if (one.query_id) return html`<a href=${`#/queries/${encodeURIComponent(one.query_id)}`}><code>${one.query_id}</code></a>`;
  if (one.topic) return html`topic <code>${one.topic}</code>${one.records ? html`, ${count(one.records)} records` : null}`;
  if (one.shards) return html`${one.shards.length === 1 ? "shard" : "shards"} ${one.shards.join(", ")}`;
  return null;
};

const Troubles = ({ troubles, state, word }) =>
  troubles.map(
    (one, place) => html`<li key=${`${one.code} ${place}`}>
      <${Badge} state=${state}>${word}<//> <${Of} one=${one} /> ${one.message ?? ""}
      ${one.hint && html`<div class="what-to-do">${one.hint}</div>`}
      ${one.code && html` <code class="dim">${one.code}</code>`}
    </li>`,
  );

/** Of a broker that does not answer nothing is known. */
const Unknown = () => html`<${Card} class="overview-health" title="Health" tools=${html`<${Badge} state="bad">not known<//>`}>
    <p class="bad"><strong>The broker does not answer: all below is from before.</strong></p>
  <//>`;

export const Health = ({ now }) => {
  if (connection.value.broken) return html`<${Unknown} />`;
  const { ready, reasons, degraded, degraded_total: total } = now;
  const errors = now.queries.ERROR;
  const pending = now.queries.PENDING;
  const state = !ready ? "bad" : total ? "warn" : "good";
  const text = !ready ? "Not ready" : total ? "Ready, with parts that are not well" : "Well: reads and writes are served";
  return html`<${Card} class="overview-health" title="Health" tools=${html`<${Badge} state=${state}>${ready ? (total ? "degraded" : "ready") : "not ready"}<//>`}>
    <p class=${state}><strong>${text}</strong></p>
    ${
      (reasons.length > 0 || degraded.length > 0) &&
      html`<ul class="troubles">
      <${Troubles} troubles=${reasons} state="bad" word="stops" />
      <${Troubles} troubles=${degraded} state="warn" word="degraded" />
    </ul>`
    }
    ${total > degraded.length && html`<p class="dim">and ${count(total - degraded.length)} more</p>`}
    ${errors > 0 && html`<p><a href="#/queries?state=ERROR">${count(errors)} ${errors === 1 ? "query has" : "queries have"} an error</a></p>`}
    ${pending > 0 && html`<p><a href="#/queries?state=PENDING">${count(pending)} ${pending === 1 ? "query waits" : "queries wait"} for a source</a></p>`}
  <//>`;
};
