// What comes in and goes out, what stands, and what it costs: each now, and its curve of the last hour.

import { Curve } from "../../lib/curve.js";
import { history } from "../../lib/history.js";
import { bytes, count, rate, share } from "../../lib/units.js";
import { Bar, Card, Figure } from "../../lib/widgets.js";
import { html } from "../../vendor/core.js";

const PARTS_SHOWN = 5;
const HEIGHT = 110;

/** The curve of some series, of those that there are. names: `{series: title}`. */
const Past = ({ names, unit = null, label }) => {
  const past = history.value;
  if (!past) return html`<p class="dim">…</p>`;
  const series = Object.entries(names)
    .filter(([name]) => past.series[name])
    .map(([name, title]) => ({ name: title, values: past.series[name].values }));
  if (past.at_ms.length < 2 || !series.length) return html`<p class="dim">The curve begins in a few seconds.</p>`;
  return html`
    <${Curve} at=${past.at_ms} series=${series} unit=${unit} height=${HEIGHT} label=${`${label}, last hour`} />
    ${series.length > 1 && html`<p class="overview-legend" aria-hidden="true">${series.map(({ name }, place) => html`<span key=${name} class=${`line-${place + 1}`}>${name}</span> `)}</p>`}`;
};

const LEVELS = {
  normal: ["", "enough"],
  refuse: ["warn", "nothing new is registered"],
  hold: ["bad", "no records are read"],
  shed: ["bad", "no answers are given"],
};

/** The largest of a whole, as bars. parts: `{name: value}`. */
const Parts = ({ parts, whole, text, label }) => {
  const sorted = Object.entries(parts)
    .filter(([, value]) => value > 0)
    .sort(([, a], [, b]) => b - a);
  const places = sorted.length === PARTS_SHOWN + 1 ? sorted.length : PARTS_SHOWN;
  const rest = sorted.slice(places).reduce((sum, [, value]) => sum + value, 0);
  const shown = sorted.slice(0, places);
  if (rest > 0) shown.push([`${sorted.length - places} others`, rest]);
  return html`<dl class="overview-parts" aria-label=${label}>
    ${shown.map(
      ([name, value]) => html`<div key=${name}>
        <dt>${name.replaceAll("_", " ")}</dt>
        <dd><${Bar} value=${whole ? value / whole : 0} label=${`${name}: ${text(value)}`} /><span class="number">${text(value)}</span></dd>
      </div>`,
    )}
  </dl>`;
};

const States = ({ queries }) => html`<p class="note states">
  ${["PAUSED", "PENDING", "ERROR"].map(
    (state) =>
      html`<a key=${state} class=${state === "ERROR" && queries[state] ? "bad" : ""} href=${`#/queries?state=${state}`}>${count(queries[state])} ${state.toLowerCase()}</a> `,
  )}
</p>`;

export const Figures = ({ now }) => {
  const { rates, queries, memory, cpu } = now;
  const [level, about] = LEVELS[memory.level] ?? ["", memory.level];
  const lost = (rates.late ?? 0) + (rates.dead_letters ?? 0);
  return html`<div class="grid overview-figures">
    <${Card} level=${3} aria-label="Rows in">
      <${Figure} name="Rows in" value=${rate(rates.records)} href="#/sources" note=${`${rate(rates.entered)} became visible`} />
      <${Past} names=${{ records_per_s: "read", entered_per_s: "visible" }} unit="/s" label="Rows in" />
    <//>
    <${Card} level=${3} aria-label="Changes out">
      <${Figure} name="Changes out" value=${rate(rates.deltas)} href="#/queries?sort=rows_per_s" note=${`${rate(rates.snapshots)} answers given`} />
      <${Past} names=${{ deltas_per_s: "changes", snapshots_per_s: "answers" }} unit="/s" label="Changes out" />
    <//>
    <${Card} level=${3} aria-label="Late rows and dead letters">
      <${Figure} name="Late rows and dead letters" value=${rate(lost)} state=${lost ? "warn" : ""} href="#/sources" note=${`${rate(rates.late)} late, ${rate(rates.dead_letters)} dead letters`} />
      <${Past} names=${{ late_per_s: "late", dead_letters_per_s: "dead letters" }} unit="/s" label="Late rows and dead letters" />
    <//>
    <${Card} level=${3} aria-label="Queries">
      <${Figure} name="Queries running" value=${count(queries.RUNNING)} href="#/queries?state=RUNNING" />
      <${States} queries=${queries} />
      <${Past} names=${{ "queries.RUNNING": "running", "queries.PAUSED": "paused", "queries.PENDING": "pending", "queries.ERROR": "error" }} label="Queries" />
    <//>
    <${Card} level=${3} aria-label="Memory">
      <${Figure} name="Memory" value=${bytes(memory.used_bytes)} state=${level} href="#/plan" note=${`${share(memory.used_bytes / memory.budget_bytes)} of a budget of ${bytes(memory.budget_bytes)}: ${about}`} />
      <${Past} names=${{ memory_bytes: "used" }} unit="bytes" label="Memory" />
      <${Parts} parts=${{ ...memory.counted_bytes, uncounted: memory.uncounted_bytes }} whole=${memory.used_bytes} text=${bytes} label="Memory by part" />
    <//>
    <${Card} level=${3} aria-label="CPU">
      <${Figure} name="CPU" value=${share(cpu.share)} href="#/plan" note="of one core, the worker's process" />
      <${Past} names=${{ cpu_share: "worker" }} unit="share" label="CPU" />
      ${cpu.by_kind ? html`<${Parts} parts=${cpu.by_kind} whole=${cpu.share} text=${share} label="CPU by kind of entity" />` : html`<p class="dim">By kind: the engines have not answered yet.</p>`}
    <//>
  </div>`;
};
