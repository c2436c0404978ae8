// Records of a source: the newest, the late ones, the dead letters, each with its reason and the way to its trace.

import { get, queryString } from "../../lib/api.js";
import { bytes, count } from "../../lib/units.js";
import { Card, Empty, ErrorBox, Instant, Tabs, useLoaded } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";
import { sourcePath, traceHref } from "./words.js";

const TABS = [
  { id: "newest", title: "Newest" },
  { id: "late", title: "Late" },
  { id: "dead_letters", title: "Dead letters" },
];
const LIMIT = 20;
const INLINE_CHARACTERS = 120;
const NOTHING = {
  newest: "The topic has no records.",
  late: "No late record was found.",
  dead_letters: "No dead letter was found.",
};

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** A key or a value: short ones in a line, long and nested ones to be opened, indented. part: `{text, bytes, cut, hex}` or null. */
export const Payload = ({ part, label }) => {
  if (part === null) return html`<span class="dim">null</span>`;
  const value = part.hex || part.cut ? undefined : parsed(part.text);
  const nested = value !== null && typeof value === "object" && Object.values(value).some((one) => one !== null && typeof one === "object");
  const note = `${part.hex ? "hexadecimal, " : ""}${bytes(part.bytes)}${part.cut ? ", cut" : ""}`;
  // Digits of large numbers would be lost, so only the blanks of what was sent are changed where it holds none.
  const exact = value !== undefined && !/\d{16}/.test(part.text) ? JSON.stringify(value, null, 2) : part.text;
  if (!nested && part.text.length <= INLINE_CHARACTERS)
    return html`<code>${part.text}</code>${(part.hex || part.cut) && html` <span class="dim">(${note})</span>`}`;
  return html`<details class="payload">
    <summary aria-label=${`${label}, ${note}`}><code>${part.text.slice(0, INLINE_CHARACTERS)}${part.text.length > INLINE_CHARACTERS ? "…" : ""}</code></summary>
    <pre>${exact}</pre><p class="dim">${note}</p>
  </details>`;
};

const RecordRow = ({ name, one }) => html`<tr>
  <td>${one.partition === null ? "–" : html`<a href=${traceHref(name, one.partition, one.offset)} title="Follow this record">${one.partition}:${count(one.offset)}</a>`}</td>
  <td><${Instant} ms=${one.timestamp_ms} /></td>
  <td>${one.reason ? html`<span class="bad">${one.reason}</span>` : one.heartbeat_ms !== null ? html`<span class="dim">heartbeat <${Instant} ms=${one.heartbeat_ms} /></span>` : html`<span class="dim">ok</span>`}</td>
  <td><${Payload} part=${one.key} label="key" /></td>
  <td class="wide"><${Payload} part=${one.value} label="value" />${one.cut_bytes !== null && html`<p class="dim">the record had ${bytes(one.cut_bytes)}: it was cut when it was passed on</p>`}</td>
</tr>`;

/** @param {{name: string, counts: {late: number, dead_letters: number}}} props */
export const Records = ({ name, counts }) => {
  const [which, setWhich] = useState("newest");
  const [found, error, again] = useLoaded(
    async (signal) => ({ which, ...(await get(`${sourcePath(name)}/records${queryString({ which, limit: LIMIT })}`, { signal })) }),
    [name, which],
  );
  const tabs = TABS.map((one) => ({ ...one, title: counts[one.id] ? `${one.title} (${count(counts[one.id])})` : one.title }));
  const shown = found?.which === which ? found : null;
  return html`<${Card} title="Records" class="records" tools=${html`<button type="button" class="small" onClick=${again}>Look again</button>`}>
    <${Tabs} tabs=${tabs} selected=${which} onSelect=${setWhich} label="Which records">
      <${ErrorBox} error=${error} />
      ${!error && !shown && html`<p class="dim" role="status">Reading from Kafka …</p>`}
      ${shown && !error && shown.records.length === 0 && html`<${Empty}>${NOTHING[which]}<//>`}
      ${
        shown &&
        !error &&
        shown.records.length > 0 &&
        html`<div class="scroll" tabindex="0" role="region" aria-label="Table of records"><table>
          <thead><tr><th scope="col">Partition:offset</th><th scope="col">Kafka's time (UTC)</th><th scope="col">Row</th><th scope="col">Key</th><th scope="col" class="wide">Value</th></tr></thead>
          <tbody>${shown.records.map((one, place) => html`<${RecordRow} key=${`${one.partition}:${one.offset}:${place}`} name=${name} one=${one} />`)}</tbody>
        </table></div>`
      }
      ${shown && !error && html`<p class="dim">${which === "newest" ? `The newest ${count(shown.records.length)} of topic ${shown.topic}.` : `Among the newest ${count(shown.scanned)} ${which === "late" ? "late records" : "dead letters"} of all sources${shown.whole ? ", which are all" : "; earlier ones were not looked at"}.`}</p>`}
    <//>
  <//>`;
};
