// The way of one record, from its offset to the answers, as steps and lit in the graph.

import { get, queryString } from "../../lib/api.js";
import { bytes, count } from "../../lib/units.js";
import { Badge, Card, ErrorBox, Field, Instant, useLoaded } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";

const STATES = {
  held: "good",
  left: "good",
  waiting: "warn",
  not_read: "warn",
  not_written: "warn",
  late: "bad",
  rejected: "bad",
  dead_letter: "bad",
};
const TITLES = {
  log: "In Kafka",
  read: "Read",
  decoded: "Decoded",
  entered: "Entered",
  matched: "Predicates",
  joined: "Joins",
  followed: "Behind it",
};

/** `name:partition:offset` as a place; null where it is none. @param {string|null} text */
export const placeOf = (text) => {
  const found = /^(.+):(\d{1,9}):(\d{1,18})$/.exec(text ?? "");
  return found && { source: found[1], partition: found[2], offset: found[3] };
};

/** What `GET /trace` says of a place: `[trace, error, again]`. @param {{source: string, partition: string, offset: string}|null} place */
export const useTrace = (place) =>
  useLoaded(
    async (signal) => (place ? get(`trace${queryString(place)}`, { signal }) : null),
    [place?.source, place?.partition, place?.offset],
  );

const Ids = ({ ids, total }) =>
  total > 0 &&
  html`<p>${ids.map((id) => html`<a key=${id} href=${`#/plan?query=${id}`} title="Light up its way">${id.slice(0, 8)}…</a> `)}${total > ids.length ? html`<span class="dim">and ${count(total - ids.length)} more</span>` : null}</p>`;

const shownBytes = (data) => (data.text === null ? "null" : (data.text ?? `0x${data.hex}`));

const More = ({ stage }) => {
  switch (stage.stage) {
    case "log":
      return html`${
        stage.value &&
        html`<pre class="value">${shownBytes(stage.value)}${stage.value.cut ? "…" : ""}</pre>
        <p class="dim">${bytes(stage.value.bytes)}${stage.key ? html`, key <code>${shownBytes(stage.key)}</code>` : ", no key"}, written <${Instant} ms=${stage.timestamp_ms} /> UTC${stage.headers ? `, ${count(stage.headers)} headers` : ""}</p>`
      }
        ${stage.end !== null && html`<p class="dim">the partition has offsets ${count(stage.begin)} to ${count(stage.end - 1)}</p>`}`;
    case "read":
      return html`<p class="dim">${stage.next_offset === null ? "nothing of the partition was read" : `it goes on at offset ${count(stage.next_offset)}`}, shard ${stage.shard}${stage.step_why ? `; the step is not known: ${stage.step_why}` : ""}</p>`;
    case "decoded":
      return html`${stage.timestamp_ms !== undefined && html`<p class="dim">its instant is <${Instant} ms=${stage.timestamp_ms} /> UTC</p>`}
        ${stage.row && html`<dl class="facts">${stage.row.map((one) => html`<dt key=${one.column}>${one.column} <span class="dim">${one.type}</span></dt><dd><code>${one.text}</code></dd>`)}</dl>`}`;
    case "entered":
      return html`<p class="dim">NOW is <${Instant} ms=${stage.now_ms} /> UTC, rows are kept from <${Instant} ms=${stage.retained_from_ms} /></p>
        ${stage.shed_ppm && html`<p class="warn">It was shed: queries that tolerate it do not see it.</p>`}`;
    case "matched":
      return html`<${Ids} ids=${stage.queries} total=${stage.total} /><${Ids} ids=${stage.joined_queries} total=${stage.joined_total} />`;
    case "joined":
      return (
        stage.joins?.length > 0 &&
        html`<ul class="plan-list">${stage.joins.map((one) => html`<li key=${`${one.join} ${one.keys} ${one.with}`}>${one.partners === null ? "partners are not known" : html`<strong>${count(one.partners)}</strong> partners`} in ${one.with} <code>${one.keys}</code></li>`)}</ul>`
      );
    default:
      return null;
  }
};

/** The form for a place. sources: names. onTrace(text): `name:partition:offset`. */
export const TraceForm = ({ sources, place, onTrace }) => {
  const [given, setGiven] = useState(place ?? { source: sources[0] ?? "", partition: "0", offset: "" });
  const set = (name) => (event) => setGiven({ ...given, [name]: event.currentTarget.value });
  const go = (event) => {
    event.preventDefault();
    onTrace(`${given.source || sources[0]}:${given.partition}:${given.offset}`);
  };
  return html`<form class="row trace-form" onSubmit=${go} aria-label="Trace a record">
    <${Field} label="Source">${(id) => html`<select id=${id} value=${given.source || sources[0]} onChange=${set("source")}>${sources.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`}<//>
    <${Field} label="Partition">${(id) => html`<input id=${id} type="number" min="0" required value=${given.partition} onInput=${set("partition")} />`}<//>
    <${Field} label="Offset">${(id) => html`<input id=${id} type="number" min="0" required value=${given.offset} onInput=${set("offset")} />`}<//>
    <button type="submit" disabled=${!sources.length}>Trace</button>
  </form>`;
};

/** The way of a record as steps. */
export const TraceCard = ({ place, trace, error, again, onClear }) => {
  const tools = html`<button type="button" class="small" onClick=${again}>Again</button><button type="button" class="plain" aria-label="Close the trace" onClick=${onClear}>✕</button>`;
  return html`<${Card} class="plan-trace" title=${`${place.source}, partition ${place.partition}, offset ${place.offset}`} tools=${tools}>
    <${ErrorBox} error=${error} />
    ${!trace && !error && html`<p class="dim">the record is looked for …</p>`}
    ${
      trace &&
      html`<p><${Badge} state=${STATES[trace.outcome] ?? "warn"}>${trace.outcome.replaceAll("_", " ")}<//> <span class="dim">topic ${trace.topic}</span></p>
      <ol class="plan-steps">${trace.stages.map(
        (stage) => html`<li key=${stage.stage} class=${stage.known ? "known" : "unknown"}>
          <strong>${TITLES[stage.stage] ?? stage.stage}</strong> ${stage.known ? stage.text : html`<span class="warn">not known: ${stage.why}</span>`}
          <${More} stage=${stage} />
        </li>`,
      )}</ol>`
    }
  <//>`;
};
