// The fields of one operator of a plan, as its schema has them.

import { Field } from "../../lib/widgets.js";
import { html, useEffect, useRef, useState } from "../../vendor/core.js";
import { INPUTS } from "./plan_model.js";

const given = (event) => event.currentTarget.value;
const orNothing = (text) => (text === "" ? undefined : text);

const Pairs = ({ id, value, described, onChange }) => {
  // Leaving one field and typing in the next are two events before the form is drawn anew: the second has to see the first.
  const rows = useRef([]);
  rows.current = typeof value === "object" ? Object.entries(value ?? {}) : [];
  const set = (next) => {
    rows.current = next;
    onChange(next.length ? Object.fromEntries(next) : undefined);
  };
  const put = (place, pair) => set(rows.current.with(place, pair(rows.current[place])));
  return html`<div class="pairs" id=${id} role="group" aria-describedby=${described}>
    ${rows.current.map(
      ([name, expression], place) => html`<div class="pair" key=${place}>
        <input aria-label=${`Name ${place + 1}`} value=${name} onChange=${(event) => put(place, ([, kept]) => [given(event), kept])} />
        <input class="mono" aria-label=${`Expression ${place + 1}`} value=${expression} onInput=${(event) => put(place, ([kept]) => [kept, given(event)])} />
        <button type="button" class="small" aria-label=${`Remove ${name}`} onClick=${() => set(rows.current.toSpliced(place, 1))}>✕</button>
      </div>`,
    )}
    <button type="button" class="small" onClick=${() => set([...rows.current, [`c${rows.current.length + 1}`, ""]])}>Add</button>
  </div>`;
};

/** Lists of texts, a line each; other values as JSON, taken once they can be read. */
const Lines = ({ id, schema, value, described, onChange }) => {
  const plain = schema.items?.type === "string" || schema.items?.minLength !== undefined;
  const show = (found) => (found === undefined ? "" : plain && Array.isArray(found) ? found.join("\n") : JSON.stringify(found));
  const [text, setText] = useState(show(value));
  const [wrong, setWrong] = useState(false);
  const shown = JSON.stringify(value);
  useEffect(() => {
    if (!wrong) setText(show(value));
  }, [shown]);
  const type = (next) => {
    setText(next);
    if (!next.trim()) return onChange(undefined);
    if (plain) return onChange(next.split("\n").filter((line) => line.trim()));
    try {
      onChange(JSON.parse(next));
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return html`<textarea id=${id} class="mono" rows=${plain ? 2 : 3} aria-describedby=${described} aria-invalid=${wrong ? "true" : undefined} value=${text} onInput=${(event) => type(given(event))}></textarea>
    ${wrong ? html`<span class="refusal">not JSON yet</span>` : null}`;
};

const One = ({ id, field, schema, value, names, described, onChange }) => {
  const shared = { id, "aria-describedby": described };
  if (INPUTS.includes(field))
    return html`<select ...${shared} value=${value ?? ""} onChange=${(event) => onChange(orNothing(given(event)))}>
      ${["", ...(names.includes(value) || !value ? names : [value, ...names])].map((one) => html`<option key=${one} value=${one}>${one || "choose"}</option>`)}
    </select>`;
  if (schema.enum)
    return html`<select ...${shared} value=${value ?? ""} onChange=${(event) => onChange(orNothing(given(event)))}>
      ${["", ...schema.enum].map((one) => html`<option key=${one} value=${one}>${one || "left out"}</option>`)}
    </select>`;
  switch (schema.type) {
    case "boolean":
      return html`<input ...${shared} type="checkbox" checked=${value === true} onChange=${(event) => onChange(event.currentTarget.checked || undefined)} />`;
    case "integer":
      return html`<input ...${shared} inputmode="numeric" value=${value ?? ""} onInput=${(event) => onChange(/^\d+$/.test(given(event)) ? Number(given(event)) : orNothing(given(event)))} />`;
    case "array":
      return html`<${Lines} id=${id} schema=${schema} value=${value} described=${described} onChange=${onChange} />`;
    case "object":
      return schema.properties
        ? html`<${Lines} id=${id} schema=${{}} value=${value} described=${described} onChange=${onChange} />`
        : html`<${Pairs} id=${id} value=${value} described=${described} onChange=${onChange} />`;
    default:
      return html`<textarea ...${shared} class="mono" rows="1" value=${value ?? ""} onInput=${(event) => onChange(orNothing(given(event)))}></textarea>`;
  }
};

/**
 * schema: of the operator. names: of the others. refused: `{field, message}` where something of it is.
 * onField(field, value), onRename(name), onRemove(), onOutput().
 */
export const OperatorForm = ({ name, node, schema, names, isOutput, refused, onField, onRename, onRemove, onOutput }) => {
  const fields = Object.entries(schema?.properties ?? {}).filter(([field]) => field !== "op");
  const strange = Object.keys(node).filter((field) => field !== "op" && !schema?.properties[field]);
  return html`<section class="operator" aria-label=${`Operator ${name}`}>
    <h3>${node.op} <code>${name}</code></h3>
    ${refused && html`<p class="refusal" role="alert">${refused.message}</p>`}
    <${Field} label="Name">${(id) => html`<input id=${id} value=${name} onChange=${(event) => given(event).trim() && onRename(given(event).trim())} />`}<//>
    ${fields.map(
      ([
        field,
        one,
      ]) => html`<${Field} key=${`${name} ${field}`} label=${`${field}${schema.required.includes(field) ? "" : " (optional)"}`} hint=${one.description} error=${refused?.field === field ? one.description : null}>
        ${(id, more) => html`<${One} id=${id} field=${field} schema=${one} value=${node[field]} names=${names} described=${more} onChange=${(value) => onField(field, value)} />`}
      <//>`,
    )}
    ${strange.map((field) => html`<p key=${field} class="refusal">${field} is no field of ${node.op}. <button type="button" class="small" onClick=${() => onField(field, undefined)}>Remove it</button></p>`)}
    <div class="row">
      <button type="button" class="small" disabled=${isOutput} onClick=${onOutput}>${isOutput ? "Its rows are the answer" : "Make it the answer"}</button>
      <button type="button" class="small danger" onClick=${onRemove}>Remove</button>
    </div>
  </section>`;
};
