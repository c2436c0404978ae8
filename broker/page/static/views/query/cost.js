// How the answer of a query comes about, what that costs, and what would cost less.

import { get } from "../../lib/api.js";
import { useEntity } from "../../lib/attributes.js";
import { readOnly } from "../../lib/session.js";
import { Sql } from "../../lib/sql.js";
import { bytes, count, duration, share, short } from "../../lib/units.js";
import { Badge, Card, Empty, ErrorBox, Figure, useLoaded } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";
import { queryPath } from "./access.js";

const ns = (value) => (typeof value === "number" ? duration(value / 1e6) : "–");

const Costs = ({ id }) => {
  const [entity, error, again] = useEntity(`query/${id}`);
  if (error && !entity) return html`<${ErrorBox} error=${error} retry=${again} />`;
  if (!entity) return html`<p class="dim">…</p>`;
  const of = Object.fromEntries(entity.attributes.map((one) => [one.name, one.value]));
  return html`<div class="grid query-figures">
      <${Figure} name="Computing time" value=${share(of.cpu_share)} note="of that of all queries" />
      <${Figure} name="Memory" value=${bytes(of.memory_bytes)} note="its part of what it shares, and its own" />
      <${Figure} name="A row costs" value=${ns(of.row_cost_ns)} note=${`${short(of.rows_in)} rows went in`} />
      <${Figure} name="Answers asked for" value=${ns(of.answers_cpu_ns)} note="since the worker started" />
      <${Figure} name="NOW behind" value=${duration(of.behind_ms)} note="the newest record of its sources" />
    </div>
    <p>It uses ${count(entity.reads.length)} parts of the engine: ${entity.reads.slice(0, 12).map((one, place) => html`${place ? ", " : ""}<code key=${one}>${one}</code>`)}${entity.reads.length > 12 ? " …" : ""}.${" "}
      <a href=${`#/plan?query=${encodeURIComponent(id)}`}>Show them in the plan, with who shares them</a></p>`;
};

const expectedOf = (expected) => {
  if (!expected) return "exact";
  const { fp, fn, error } = expected;
  return (
    [fp ? `${share(fp)} wrong` : "", fn ? `${share(fn)} missing` : "", error ? `± ${share(error)}` : ""].filter(Boolean).join(", ") ||
    "exact"
  );
};

const Steps = ({ steps, isMeasured }) => html`<div class="scroll" tabindex="0" role="region" aria-label="Operators">
  <table>
    <thead><tr><th scope="col">Operator</th><th scope="col">What it does</th><th scope="col">Changes</th><th scope="col" class="number">Rows, estimated</th><th scope="col" class="number">Time, estimated</th>${isMeasured && html`<th scope="col" class="number">Rows</th><th scope="col" class="number">Time</th>`}<th scope="col">Precision</th></tr></thead>
    <tbody>${steps.map(
      (one, place) =>
        html`<tr key=${place}><th scope="row">${one.operator}</th><td>${one.details.join("; ")}</td><td><abbr title=${PATTERNS[one.pattern]}>${one.pattern}</abbr></td><td class="number">${count(one.estimated_rows)}</td><td class="number">${ns(one.estimated_ns)}</td>${isMeasured && html`<td class="number">${count(one.actual_rows)}</td><td class="number">${ns(one.actual_ns)}</td>`}<td>${expectedOf(one.expected)}</td></tr>`,
    )}</tbody>
  </table>
</div>`;

const PATTERNS = {
  MON: "monotonic: rows come, none goes",
  WKS: "weakest non-monotonic: rows go in the order in which they came",
  WK: "weak non-monotonic: when a row goes is known as it comes",
  STR: "strict non-monotonic: a row may go at any time",
};

const Proposal = ({ one, onUse, canUse }) => html`<li>
  <p><strong>${one.rule}</strong> of ${one.source}: ${one.change} ${one.within_tolerance ? html`<${Badge} state="good">within its tolerance<//>` : html`<${Badge} state="warn">beyond its tolerance<//>`}</p>
  <p class="dim">Rows of ${one.source}: ${count(one.rows)} → ${count(one.rows_after)}; of the answer: ${count(one.answer_rows)} → ${count(one.answer_rows_after)}; frees up to ${bytes(one.bytes_saved)}. Against the present text: ${expectedOf(one.expected)}.</p>
  <${Sql} text=${one.sql} />
  ${canUse && html`<button type="button" onClick=${() => onUse(one.sql)}>Use this text</button>`}
</li>`;

/** onUse(sql): alter the query to a proposed text; null where that cannot be done from here. */
export const Cost = ({ id, handle, onUse }) => {
  const [analyze, setAnalyze] = useState(0);
  const [plan, error, again] = useLoaded(
    (signal) => get(queryPath(id, `/plan${analyze ? "?analyze=true" : ""}`), { handle, signal }),
    [id, handle, analyze],
  );
  const [proposals, refused] = useLoaded((signal) => get(queryPath(id, "/proposals"), { handle, signal }), [id, handle]);
  return html`
    <${Card} title="Cost"><${Costs} id=${id} /><//>
    <${Card} title="Plan" tools=${html`<button type="button" class="small" title="Evaluates the query once; data of its sources waits meanwhile" onClick=${() => setAnalyze(analyze + 1)}>${analyze ? "Measure again" : "Measure each operator"}</button>`}>
      <${ErrorBox} error=${error} retry=${again} />
      ${
        plan &&
        html`<dl class="facts">
            <dt>Maintenance</dt><dd><strong>${plan.maintenance}</strong> <span class="dim">${plan.reason}</span></dd>
            <dt>Strategy</dt><dd>${plan.strategy ? html`<strong>${plan.strategy.strategy}</strong> <span class="dim">${plan.strategy.reason}</span>` : "–"}</dd>
            <dt>Changes</dt><dd>${plan.followed ? "followed" : "followed by nobody"} <span class="dim">${plan.operator_rule}</span></dd>
            ${plan.predicates.map((one) => html`<dt key=${one.source}>Rows of ${one.source}</dt><dd><code>${one.predicate}</code></dd>`)}
          </dl>
          <${Steps} steps=${plan.steps} isMeasured=${plan.steps.some((one) => "actual_rows" in one)} />`
      }
    <//>
    <${Card} title="Texts that cost less">
      <${ErrorBox} error=${refused} />
      ${proposals && (proposals.proposals.length ? html`<ul class="query-proposals">${proposals.proposals.map((one) => html`<${Proposal} key=${one.sql} one=${one} onUse=${onUse} canUse=${onUse !== null && !readOnly.value} />`)}</ul>` : html`<${Empty}>None is known for this query.<//>`)}
    <//>`;
};
