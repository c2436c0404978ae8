// What was inferred for a topic, to be corrected before it is created.

import { count, duration, share } from "../../lib/units.js";
import { Badge, Card, Field, Instant } from "../../lib/widgets.js";
import { html } from "../../vendor/core.js";
import { TYPES } from "./statement.js";

const Sample = ({ found }) => {
  const { sample } = found;
  const read = sample.records ? sample.read / sample.records : 0;
  return html`
    <p><strong>${count(sample.records)}</strong> of about ${count(found.topic_records)} records were looked at, in ${count(found.partitions)} ${found.partitions === 1 ? "partition" : "partitions"}. The proposal reads <strong class=${read < 1 ? "warn" : "good"}>${share(read)}</strong>; <strong class=${sample.late ? "warn" : ""}>${count(sample.late)}</strong> would be late.</p>
    ${sample.unreadable.length > 0 && html`<ul>${sample.unreadable.map((one) => html`<li key=${one.reason}><span class="warn">${count(one.records)} dead letters:</span> ${one.reason}</li>`)}</ul>`}
    ${found.read_by.length > 0 && html`<p class="warn">Read already by ${found.read_by.join(", ")}.</p>`}`;
};

const ColumnRow = ({ one, form, records, disabled, onChange }) => {
  const isKey = form.key.includes(one.name);
  const needed = isKey || one.name === form.timestamp;
  const types = TYPES.includes(one.type) ? TYPES : [one.type, ...TYPES];
  return html`<tr>
    <td><input type="checkbox" aria-label=${`Keep column ${one.name}`} checked=${one.kept || isKey} disabled=${disabled || needed} onChange=${(event) => onChange({ ...one, kept: event.currentTarget.checked })} /></td>
    <th scope="row"><code>${one.name}</code>${isKey && html` <${Badge}>key<//>`}${one.name === form.timestamp && html` <${Badge}>event time<//>`}${one.member !== one.name && html`<div class="note">member ${one.member}</div>`}</th>
    <td><select aria-label=${`Type of ${one.name}`} disabled=${disabled} value=${one.type} onChange=${(event) => onChange({ ...one, type: event.currentTarget.value })}>${types.map((type) => html`<option key=${type} value=${type}>${type}</option>`)}</select>
      ${one.guessed && html`<div class="note warn">${one.guessed}</div>`}</td>
    <td><input type="checkbox" aria-label=${`${one.name} is NOT NULL`} checked=${!one.nullable || needed} disabled=${disabled || needed} onChange=${(event) => onChange({ ...one, nullable: !event.currentTarget.checked })} /></td>
    <td class=${`number ${one.values < records ? "warn" : ""}`}>${records ? share(one.values / records) : "–"}</td>
    <td class="examples">${one.examples.map((text) => html`<div key=${text}><code>${text}</code></div>`)}</td>
  </tr>`;
};

const LeftOut = ({ members }) => html`<${Card} title="Left out" level=${3}>
  <div class="scroll" tabindex="0" role="region" aria-label="Table of members that are left out"><table class="described">
    <thead><tr><th scope="col">Member</th><th scope="col">Why</th><th scope="col">For example</th></tr></thead>
    <tbody>${members.map((one) => html`<tr key=${one.member}><th scope="row"><code>${one.member}</code></th><td>${one.reason}</td><td class="examples">${one.examples.map((text) => html`<div key=${text}><code>${text}</code></div>`)}</td></tr>`)}</tbody>
  </table></div>
<//>`;

/** found: of `POST /sources/infer`. form: null where nothing could be inferred. disabled: the text counts, not the form. */
export const InferredForm = ({ found, form, onForm, disabled, onAgain }) => {
  const set = (more) => onForm({ ...form, ...more });
  const change = (place) => (one) => set({ columns: form.columns.map((other, at) => (at === place ? one : other)) });
  const instants = form?.columns.filter((one) => one.type === "TIMESTAMP") ?? [];
  // What the table of columns tells in its place is not told twice.
  const warnings = found.warnings.filter(
    (one) => !["column_guessed", "member_left_out", "records_unreadable", "lateness_guessed"].includes(one.code),
  );
  return html`<${Card} title=${`Inferred from ${found.topic}`} tools=${html`<button type="button" class="small" onClick=${onAgain}>Look again</button>`}>
    <${Sample} found=${found} />
    ${warnings.length > 0 && html`<ul>${warnings.map((one) => html`<li key=${one.code}><span class="warn">${one.message}:</span> ${one.hint}</li>`)}</ul>`}
    ${
      form &&
      html`<div class="row">
          <${Field} label="Name">${(id) => html`<input id=${id} disabled=${disabled} value=${form.name} onInput=${(event) => set({ name: event.currentTarget.value })} />`}<//>
          ${
            form.kind === "stream" || instants.length
              ? html`<${Field} label="Event time">${(id) => html`<select id=${id} disabled=${disabled} value=${form.timestamp} onChange=${(event) => set({ timestamp: event.currentTarget.value })}><option value="">none: arrival time</option>${instants.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select>`}<//>`
              : null
          }
          ${form.timestamp && html`<${Field} label="Lateness">${(id) => html`<input id=${id} size="12" placeholder="none" disabled=${disabled} value=${form.lateness} onInput=${(event) => set({ lateness: event.currentTarget.value })} />`}<//>`}
          <${Field} label="Rows stay">${(id) => html`<input id=${id} size="12" placeholder="1 day" disabled=${disabled} value=${form.retain} onInput=${(event) => set({ retain: event.currentTarget.value })} />`}<//>
        </div>
        ${found.timestamp && html`<p class="dim">${found.timestamp.column} is from <${Instant} ms=${found.timestamp.from_ms} /> to <${Instant} ms=${found.timestamp.to_ms} /> in the sample${found.timestamp.disorder_ms ? `, up to ${duration(found.timestamp.disorder_ms)} out of order` : ", in order"}. NOW stays behind the latest row by the lateness; a row that comes later than that is late.</p>`}
        <div class="scroll" tabindex="0" role="region" aria-label="Table of inferred columns"><table class="types">
          <thead><tr><th scope="col"><span class="visually-hidden">Keep</span></th><th scope="col">Column</th><th scope="col">Type</th><th scope="col">NOT NULL</th><th scope="col" class="number">Has a value</th><th scope="col">For example</th></tr></thead>
          <tbody>${form.columns.map((one, place) => html`<${ColumnRow} key=${one.name} one=${one} form=${form} records=${found.sample.records} disabled=${disabled} onChange=${change(place)} />`)}</tbody>
        </table></div>
        <p class="dim">A record whose value does not fit its column's type, or that lacks a NOT NULL column, becomes a dead letter.</p>`
    }
    ${found.left_out.length > 0 && html`<${LeftOut} members=${found.left_out} />`}
  <//>`;
};
