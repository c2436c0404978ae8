// One stream, table or view.

import { get } from "../../lib/api.js";
import { usePolled } from "../../lib/polled.js";
import { Remarks } from "../../lib/remarks.js";
import { readOnly } from "../../lib/session.js";
import { bytes, count, duration, rate, share } from "../../lib/units.js";
import { Badge, Card, Copy, Empty, ErrorBox, Figure, Instant, useLoaded } from "../../lib/widgets.js";
import { html, useRef, useState } from "../../vendor/core.js";
import { DropDialog } from "./drop.js";
import { Spark, useHistory } from "./history.js";
import { Partitions } from "./partitions.js";
import { Records } from "./records.js";
import { distance, queriesHref, sourceHref, sourcePath } from "./words.js";

const EVERY_MS = 1_000;

/** Records per second, from two looks. */
const useRate = (source) => {
  const known = useRef({ at_ms: 0, records: null, rate: null });
  if (source && source.at_ms > known.current.at_ms) {
    const { at_ms, records } = known.current;
    const now =
      records === null || source.records === undefined ? null : (1_000 * Math.max(0, source.records - records)) / (source.at_ms - at_ms);
    known.current = { at_ms: source.at_ms, records: source.records ?? null, rate: now };
  }
  return known.current.rate;
};

/** How far NOW is behind the newest record; of a view, which has none, from the clock. */
const behindWords = ({ behind_ms, now_ms, at_ms }) =>
  behind_ms === null
    ? distance(now_ms, at_ms)
    : html`<span title=${distance(now_ms, at_ms)}>${behind_ms < 1 ? "at the newest record" : `${duration(behind_ms)} behind the newest record`}</span>`;

const Figures = ({ source, perSecond, history }) => {
  const since = source.counted_from_ms ? html`since <${Instant} ms=${source.counted_from_ms} />` : null;
  const stored = source.kind !== "view";
  return html`<div class="grid source-figures">
    ${stored && html`<div class="card"><${Figure} name="Records" value=${rate(perSecond)} note=${`${count(source.records)} since the broker started`}><${Spark} history=${history} of="records_per_s" label="records per second" /><//></div>`}
    <div class="card"><${Figure} name="NOW (UTC)" value=${html`<${Instant} ms=${source.now_ms} />`} note=${source.now_ms === null ? "no row has set it yet" : behindWords(source)}><${Spark} history=${history} of="lag_ms" label="how far NOW is behind" /><//></div>
    ${stored && html`<div class="card"><${Figure} name="Rows" value=${count(source.rows)} note=${html`${count(source.pending)} more wait for NOW${source.retained_from_ms !== null ? html`; from <${Instant} ms=${source.retained_from_ms} />` : ""}`} /></div>`}
    ${stored && html`<div class="card"><${Figure} name="Late" value=${count(source.late)} state=${source.late ? "warn" : ""} note=${since}><${Spark} history=${history} of="late_per_s" label="late rows per second" /><//></div>`}
    ${stored && html`<div class="card"><${Figure} name="Dead letters" value=${count(source.dead_letters)} state=${source.dead_letters ? "warn" : ""} note=${html`${since}${source.rejected ? `, ${count(source.rejected)} ahead of the clock` : ""}`}><${Spark} history=${history} of="dead_letters_per_s" label="dead letters per second" /><//></div>`}
    ${stored && (source.shed > 0 || source.unread > 0 || source.shedding_share > 0) && html`<div class="card"><${Figure} name="Shed" value=${count(source.shed)} state="warn" note=${`${share(source.shedding_share)} of records now; ${count(source.unread)} were not even read`}><${Spark} history=${history} of="shedding_share" label="share that is shed" /><//></div>`}
    <div class="card"><${Figure} name="Queries" value=${count(source.read_by.queries)} href=${queriesHref(source.name)} note="that read it" /></div>
  </div>`;
};

const Columns = ({ source }) => {
  const absent = new Set(source.absent_columns);
  const key = new Set(source.key ?? []);
  const timestamp = source.time_rules?.timestamp;
  return html`<${Card} title="Columns">
    <div class="scroll" tabindex="0" role="region" aria-label="Table of columns"><table class="described">
      <thead><tr><th scope="col">Column</th><th scope="col">Type</th><th scope="col">NULL</th><th scope="col">Note</th></tr></thead>
      <tbody>${source.columns.map(
        (
          one,
        ) => html`<tr key=${one.name}><th scope="row"><code>${one.name}</code></th><td>${one.type}${one.path && html`<div class="note">path ${one.path}</div>`}</td><td>${one.nullable ? "may be" : "never"}</td>
          <td>${key.has(one.name) && html`<${Badge}>key<//> `}${timestamp === one.name && html`<${Badge}>event time<//> `}${absent.has(one.name) && html`<span class="warn">no record since the broker started had a value</span>`}</td></tr>`,
      )}</tbody>
    </table></div>
  <//>`;
};

const Constraints = ({ constraints }) => html`<${Card} title="Constraints">
  <table><thead><tr><th scope="col">Promise</th><th scope="col" class="number">Rows that broke it</th></tr></thead>
    <tbody>${constraints.map((one) => html`<tr key=${one.text}><td><code>${one.text}</code>${one.values_forgotten > 0 && html`<div class="note warn">${count(one.values_forgotten)} values are too long ago: one that comes again is not told</div>`}</td><td class=${`number ${one.violations ? "warn" : ""}`}>${count(one.violations)}</td></tr>`)}</tbody></table>
<//>`;

const Rules = ({ source }) => {
  const rules = source.time_rules;
  const archive = source.archive;
  return html`<${Card} title="Time">
    <dl class="facts">
      <dt>Time</dt><dd>${rules.timestamp ? html`event time, of column <code>${rules.timestamp}</code>` : "arrival: Kafka stamps each record"}</dd>
      ${rules.timestamp && html`<dt>Lateness</dt><dd>${rules.lateness_ms ? duration(rules.lateness_ms) : "none"}</dd>`}
      ${rules.timestamp && html`<dt>Idle after</dt><dd>${duration(rules.idle_timeout_ms)}${rules.idle_advances ? ", then NOW goes on with the clock" : ""}</dd>`}
      ${rules.timestamp && html`<dt>Refused</dt><dd>more than ${duration(rules.future_max_ms)} ahead of the clock${rules.past_max_ms === null ? "" : `, or ${duration(rules.past_max_ms)} behind Kafka's time`}</dd>`}
      <dt>Rows stay</dt><dd>${duration(rules.retain_ms)}, or as long as a window needs them</dd>
      ${archive && html`<dt>Archive</dt><dd>${archive.archived ? html`${archive.complete_from_ms === null ? "from the beginning" : html`from <${Instant} ms=${archive.complete_from_ms} />`} to <${Instant} ms=${archive.until_ms} />` : "nothing yet"}${archive.backfill ? `; history ${String(archive.backfill.state).replaceAll("_", " ")}` : ""}</dd>`}
    </dl>
  <//>`;
};

const Summaries = ({ name }) => {
  const [found, error] = useLoaded((signal) => get("summaries", { signal }), [name]);
  const own = (found?.summaries ?? []).filter((one) => one.stream === name);
  if (!own.length && !error) return null;
  return html`<${Card} title="Summaries">
    <${ErrorBox} error=${error} />
    <div class="scroll" tabindex="0" role="region" aria-label="Table of summaries"><table class="described">
      <thead><tr><th scope="col">Summary</th><th scope="col">Column</th><th scope="col">State</th><th scope="col" class="number">Granularity</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Held</th></tr></thead>
      <tbody>${own.map((one) => html`<tr key=${one.name}><th scope="row">${one.name}</th><td><code>${one.attribute}</code></td><td><${Badge}>${one.state}<//></td><td class="number">${duration(one.granularity_ms)}</td><td class="number">${count(one.rows)}</td><td class="number">${bytes(one.bytes)}</td></tr>`)}</tbody>
    </table></div>
  <//>`;
};

const ReadBy = ({ source }) => {
  const { queries, views, summaries, referring } = source.read_by;
  const links = (names) => names.map((name, place) => html`${place ? ", " : ""}<a href=${sourceHref(name)}>${name}</a>`);
  return html`<${Card} title="What reads it">
    <dl class="facts">
      <dt>Queries</dt><dd><a href=${queriesHref(source.name)}>${count(queries)}</a></dd>
      <dt>Views</dt><dd>${views.length ? links(views) : "none"}</dd>
      ${source.reads && html`<dt>It reads</dt><dd>${links(source.reads)}</dd>`}
      ${summaries.length > 0 && html`<dt>Summaries</dt><dd>${summaries.join(", ")}</dd>`}
      ${referring.length > 0 && html`<dt>Constraints of</dt><dd>${links(referring)}</dd>`}
    </dl>
  <//>`;
};

/** @param {{name: string}} props */
export const OneSource = ({ name }) => {
  const [source, error, again] = usePolled((signal) => get(sourcePath(name), { signal }), [name], EVERY_MS);
  const perSecond = useRate(source);
  const [history, historyError] = useHistory(name, Boolean(source?.time_rules));
  const [drops, setDrops] = useState(false);
  const gone = error?.code === "unknown_source";
  if (gone)
    return html`<div class="heading"><h1>${name}</h1></div><${Empty}>${source ? "This source was dropped." : "There is no such source."} <a href="#/sources">All sources</a><//>`;
  if (!source) return html`<div class="heading"><h1>${name}</h1></div><${ErrorBox} error=${error} retry=${again} />`;
  return html`
    <div class="heading">
      <h1>${name}</h1><${Badge}>${source.kind}<//><${Badge}>${source.state}<//>
      ${source.topic && html`<span class="dim">topic <code>${source.topic}</code></span>`}
      <div class="tools">
        <a href="#/sources">All sources</a>
        ${!readOnly.value && html`<button type="button" class="danger" onClick=${() => setDrops(true)}>Drop</button>`}
      </div>
    </div>
    <${ErrorBox} error=${error} retry=${again} />
    <${ErrorBox} error=${source.error} />
    <${Remarks} of=${{ catching_up: source.catching_up ? [source.catching_up] : [] }} />
    <${Figures} source=${source} perSecond=${perSecond} history=${history} />
    ${historyError && source.time_rules && html`<p class="dim">The last hour is not shown: ${historyError.message}</p>`}
    ${source.time_rules && html`<${Partitions} source=${source} onChanged=${again} />`}
    ${source.time_rules && html`<${Records} name=${name} counts=${{ late: source.late, dead_letters: source.dead_letters }} />`}
    <div class="grid wide">
      <${Columns} source=${source} />
      ${source.constraints.length > 0 && html`<${Constraints} constraints=${source.constraints} />`}
      ${source.time_rules && html`<${Rules} source=${source} />`}
      <${ReadBy} source=${source} />
      ${source.kind === "stream" && html`<${Summaries} name=${name} />`}
      <${Card} title="Statement" tools=${html`<${Copy} text=${source.sql} />`}><pre>${source.sql}</pre><//>
    </div>
    ${drops && html`<${DropDialog} source=${source} onClose=${() => setDrops(false)} onDropped=${() => (location.hash = "#/sources")} />`}`;
};
