// The attributes of an entity, and how they are changed: what an edit does is said before it is done.
import { html, useEffect, useId, useRef, useState } from "../vendor/core.js";
import { entityPath, get, patch, queryString } from "./api.js";
import { Curve } from "./curve.js";
import { usePolled } from "./polled.js";
import { handleOf, readOnly } from "./session.js";
import { valued } from "./units.js";
import { Dialog, Empty, ErrorBox } from "./widgets.js";

const DRY_RUN_AFTER_MS = 300;
const AGAIN_MS = 5_000;
const CURVE_AGAIN_MS = 10_000;

/** The handle that this tab has of an entity that is a query, else null. @param {string} id */
const handleFor = (id) => (id.startsWith("query/") ? handleOf(id.slice("query/".length)) : null);

/** An entity with its attributes, read again every five seconds and after each edit: `[entity, error, again]`. @param {string} id */
export const useEntity = (id) => usePolled((signal) => get(entityPath(id), { handle: handleFor(id), signal }), [id], AGAIN_MS);

/**
 * What setting some attributes would do; nothing is done.
 * @param {string} id @param {Record<string, any>} values @param {AbortSignal} [signal]
 * @returns {Promise<{values: Record<string, {from: any, to: any}>, consequences: {code: string, text: string, bytes?: number, of?: string}[]}>}
 */
export const dryRun = (id, values, signal) => patch(`${entityPath(id)}?dry_run=true`, values, { handle: handleFor(id), signal });

/** Set attributes; the entity as it is then. @param {string} id @param {Record<string, any>} values */
export const setAttributes = (id, values) => patch(entityPath(id), values, { handle: handleFor(id) });

const SERIOUS = new Set(["answer_ends", "answers_approximate", "feeds_must_refetch", "rows_released", "answers_change"]);
const CAREFUL = new Set(["answers_may_be_approximate", "state_made_anew", "memory_taken"]);
const CALM = new Set(["answers_stay", "nothing_changes", "feeds_go_on", "answers_exact"]);
const stateOf = (code) => (SERIOUS.has(code) ? "bad" : CAREFUL.has(code) ? "warn" : CALM.has(code) ? "good" : "");
const signed = (bytes) => `${bytes < 0 ? "frees" : "takes"} about ${valued(Math.abs(bytes), "bytes")}`;

/** The consequences of a dry run, as sentences. */
export const Consequences = ({ consequences }) => html`
  <ul class="consequences">
    ${consequences.map(
      (one) => html`<li key=${`${one.of ?? ""} ${one.code} ${one.text}`} data-code=${one.code}>
        <span class=${`badge ${stateOf(one.code)}`}>${one.code.replaceAll("_", " ")}</span>
        <span>${one.of && html`<code>${one.of}</code> `}${one.text}${one.bytes ? ` It ${signed(one.bytes)}.` : ""}</span>
      </li>`,
    )}
  </ul>`;

/** A value as people read it, with its unit. */
export const Value = ({ attribute }) =>
  attribute.value === null ? html`<span class="dim">not set</span>` : html`${valued(attribute.value, attribute.unit)}`;

/** What it accepts, in words. */
const accepted = ({ accepts, choices, unit }) => `${accepts || choices.join(", ")}${unit ? ` (${unit})` : ""}`;

/** What a text of the form means for an attribute: `[value, problem]`. */
export const readValue = (attribute, text) => {
  if (attribute.type === "boolean") return [text === "true", null];
  if (attribute.choices.length || attribute.type === "text") return [text, null];
  const number = Number(text.replaceAll(",", "").trim());
  if (!text.trim() || !Number.isFinite(number)) return [null, "a number is needed"];
  if (attribute.type === "integer" && !Number.isInteger(number)) return [null, "a whole number is needed"];
  const { low = null, high = null, low_excluded: above = false } = attribute.range ?? {};
  if (low !== null && (number < low || (above && number === low))) return [null, `${above ? "above" : "at least"} ${low}`];
  if (high !== null && number > high) return [null, `at most ${high}`];
  return [number, null];
};

const textOf = ({ value }) => (value === null ? "" : String(value));

const Input = ({ attribute, id, text, onText, described, invalid }) => {
  const shared = { id, "aria-describedby": described, "aria-invalid": invalid ? "true" : undefined };
  const onInput = (event) => onText(event.currentTarget.value);
  const choices = attribute.type === "boolean" ? ["true", "false"] : attribute.choices;
  if (choices.length)
    return html`<select ...${shared} value=${text} onChange=${onInput}>
      ${(choices.includes(text) ? choices : [text, ...choices]).map((one) => html`<option key=${one} value=${one}>${one || "not set"}</option>`)}
    </select>`;
  if (attribute.type === "text") return html`<input ...${shared} type="text" value=${text} onInput=${onInput} />`;
  return html`<input ...${shared} type="text" inputmode="decimal" autocomplete="off" value=${text} onInput=${onInput} />`;
};

const Slider = ({ attribute, label, text, onText }) => {
  const { low = null, high = null } = attribute.range ?? {};
  if (low === null || high === null || !["integer", "number"].includes(attribute.type) || high / Math.max(1, Math.abs(low)) > 1e6)
    return null;
  const step = attribute.type === "integer" ? Math.max(1, Math.round((high - low) / 1_000)) : (high - low) / 1_000;
  const onInput = (event) => onText(event.currentTarget.value);
  return html`<input type="range" aria-label=${label} min=${low} max=${high} step=${step} value=${Number(text) || low} onInput=${onInput} />`;
};

/**
 * Edits one attribute: the value, what it does, Apply. onDone(entity): it was set.
 * The version that was seen goes with the edit, so one that somebody else changed meanwhile is not overwritten unseen.
 */
export const AttributeEditor = ({ entity, attribute, onDone, onCancel }) => {
  const id = useId();
  const [base, setBase] = useState(entity);
  const [text, setText] = useState(textOf(attribute));
  const [cleared, setCleared] = useState(false);
  const [told, setTold] = useState(null);
  const [refused, setRefused] = useState(null);
  const [theirs, setTheirs] = useState(null);
  const [busy, setBusy] = useState(false);
  const form = useRef(null);
  const now = base.attributes.find((one) => one.name === attribute.name) ?? attribute;
  const [read, problem] = cleared ? [null, null] : readValue(attribute, text);
  const changed = cleared ? true : text !== textOf(now);

  useEffect(() => form.current?.querySelector("input,select")?.focus(), []);
  useEffect(() => {
    setTold(null);
    if (problem || !changed) return;
    const abort = new AbortController();
    const timer = setTimeout(
      () =>
        dryRun(base.id, { [attribute.name]: read }, abort.signal).then(
          (found) => {
            setTold(found);
            setRefused(null);
          },
          (error) => error.name !== "AbortError" && setRefused(error),
        ),
      DRY_RUN_AFTER_MS,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [base.id, text, cleared]);

  const give = (value) => {
    setCleared(false);
    setRefused(null);
    setText(value);
  };
  const apply = async (event) => {
    event?.preventDefault();
    if (problem || busy) return;
    setBusy(true);
    setRefused(null);
    try {
      const after = await setAttributes(base.id, { [attribute.name]: read, if_version: base.version });
      setTheirs(null);
      onDone(after);
    } catch (error) {
      if (error.code === "edit_conflict") {
        const other = await get(entityPath(base.id), { handle: handleFor(base.id) }).catch(() => null);
        if (other) {
          setTheirs(other);
          setBase(other);
        } else setRefused(error);
      } else setRefused(error);
    }
    setBusy(false);
  };

  const changes = theirs
    ? theirs.attributes.filter((one) => one.settable && one.value !== entity.attributes.find((was) => was.name === one.name)?.value)
    : [];
  return html`<form class="editor" ref=${form} onSubmit=${apply} aria-label=${`Change ${attribute.name}`}>
    <div class="field">
      <label for=${id}>${attribute.name}${attribute.unit ? html` <span class="unit">(${attribute.unit})</span>` : null}</label>
      <div class="row">
        <${Input} attribute=${attribute} id=${id} text=${cleared ? "" : text} onText=${give} described=${`${id}-about`} invalid=${Boolean(problem || refused)} />
        <${Slider} attribute=${attribute} label=${`${attribute.name}, by slider`} text=${text} onText=${give} />
        ${attribute.clearable && html`<button type="button" class="small" aria-pressed=${cleared} onClick=${() => setCleared(!cleared)}>Default</button>`}
      </div>
      <div id=${`${id}-about`} class="dim">${attribute.about}. Accepted: ${accepted(attribute)}${attribute.clearable ? ", or the default" : ""}.</div>
      ${problem && html`<div class="refusal" role="alert">${problem}</div>`}
    </div>
    ${
      theirs &&
      html`<div class="error" role="alert">
        <p><strong>Somebody else changed it meanwhile</strong>, after you read it; nothing of yours was set.</p>
        <p>${changes.length ? changes.map((one) => html`<span key=${one.name}><code>${one.name}</code> is <strong>${valued(one.value, one.unit)}</strong> now. </span>`) : `${attribute.name} is ${valued(now.value, now.unit)} now, as it was.`}</p>
        <p>Apply again to set yours all the same.</p>
      </div>`
    }
    <${ErrorBox} error=${refused} />
    <div aria-live="polite">${told ? html`<${Consequences} consequences=${told.consequences} />` : changed && !problem && !refused ? html`<p class="dim">Asking what it does …</p>` : null}</div>
    <footer class="row">
      <button type="submit" class="main" disabled=${busy || Boolean(problem) || !changed}>${theirs ? "Apply again" : "Apply"}</button>
      <button type="button" onClick=${onCancel}>${theirs ? "Take theirs" : "Cancel"}</button>
    </footer>
  </form>`;
};

/** Of what everything has: the series of its history that show it. */
const SERIES = { rows_in: "rows_in_per_s", memory_bytes: "memory_bytes", cpu_share: "cpu_share" };

/** Units that stand at the axis; others stand above the curve. */
const DRAWN = ["bytes", "share", "ms", "ns", "s"];

/** The series of an attribute in the history of its entity; null: none is kept. Of queries nothing is. */
const seriesOf = (entity, attribute) => {
  if (entity.kind === "query" || !["integer", "number"].includes(attribute.type)) return null;
  return attribute.settable ? attribute.name : (SERIES[attribute.name] ?? null);
};

const AttributeCurve = ({ id, attribute, series }) => {
  const [history, error] = usePolled((signal) => get(`history${queryString({ entity: id })}`, { signal }), [id], CURVE_AGAIN_MS);
  const kept = history?.series?.[series];
  if (!history) return html`<p class="dim">${error ? `No curve: ${error.message}` : "…"}</p>`;
  if (!kept) return html`<p class="dim">No history is kept of ${attribute.name}.</p>`;
  const unit = DRAWN.includes(kept.unit) ? kept.unit : null;
  const label = `${series}${unit || !kept.unit ? "" : `, ${kept.unit}`}, last hour`;
  return html`<p class="dim">${label}</p><${Curve} at=${history.at_ms} series=${[{ name: series, values: kept.values }]} unit=${unit} height=${120} label=${label} />`;
};

/** One row: name, value, what it is; the way to its editor and its curve. */
const Row = ({ entity, attribute, locked, onDone }) => {
  const [open, setOpen] = useState(null);
  const button = useRef(null);
  const series = seriesOf(entity, attribute);
  const close = () => {
    setOpen(null);
    button.current?.focus();
  };
  return html`<tr>
      <th scope="row"><code>${attribute.name}</code></th>
      <td class="number"><${Value} attribute=${attribute} /></td>
      <td class="dim about">${attribute.about}</td>
      <td class="actions">
        ${series && html`<button type="button" class="small plain" aria-expanded=${open === "curve"} aria-label=${`Curve of ${attribute.name}`} onClick=${() => setOpen(open === "curve" ? null : "curve")}>Curve</button>`}
        ${attribute.settable && !locked && html`<button type="button" class="small" ref=${button} aria-expanded=${open === "edit"} aria-label=${`Change ${attribute.name}`} onClick=${() => setOpen(open === "edit" ? null : "edit")}>Change</button>`}
      </td>
    </tr>
    ${
      open &&
      html`<tr class="opened"><td colspan="4">
        ${
          open === "curve"
            ? html`<${AttributeCurve} id=${entity.id} attribute=${attribute} series=${series} />`
            : html`<${AttributeEditor} entity=${entity} attribute=${attribute} onCancel=${close} onDone=${(after) => {
                close();
                onDone(after);
              }} />`
        }
      </td></tr>`
    }`;
};

const Table = ({ entity, attributes, label, locked, onDone }) => html`
  <div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table class="attributes">
      <caption class="visually-hidden">${label}</caption>
      <thead><tr><th scope="col">Attribute</th><th scope="col" class="number">Value</th><th scope="col">What it is</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
      <tbody>${attributes.map((one) => html`<${Row} key=${one.name} entity=${entity} attribute=${one} locked=${locked} onDone=${onDone} />`)}</tbody>
    </table>
  </div>`;

/**
 * All attributes of an entity: those that can be set first, each with its editor; in read-only mode values alone.
 * only: settable ones alone. onChanged(entity): after an edit.
 * @param {{id: string, only?: boolean, onChanged?: (entity: any) => void}} props
 */
export const Attributes = ({ id, only = false, onChanged = () => {} }) => {
  const [entity, error, again] = useEntity(id);
  const [said, setSaid] = useState("");
  if (error && !entity) return html`<${ErrorBox} error=${error} retry=${again} />`;
  if (!entity) return html`<p class="dim">…</p>`;
  const settable = entity.attributes.filter((one) => one.settable);
  const rest = entity.attributes.filter((one) => !one.settable);
  const done = (after) => {
    setSaid("It is set.");
    again();
    onChanged(after);
  };
  const label = `Attributes of ${id}`;
  return html`<div class="entity">
    <p class="visually-hidden" role="status">${said}</p>
    ${settable.length ? html`<${Table} entity=${entity} attributes=${settable} label=${label} locked=${readOnly.value} onDone=${done} />` : html`<${Empty}>Nothing of it can be set.<//>`}
    ${readOnly.value && settable.length > 0 ? html`<p class="dim">Read only: nothing is changed from here.</p>` : null}
    ${!only && rest.length > 0 && html`<details><summary>${rest.length} more that can only be read</summary><${Table} entity=${entity} attributes=${rest} label=${`${label}, to be read`} locked=${true} onDone=${done} /></details>`}
  </div>`;
};

/** The attributes of an entity in a dialog. */
export const AttributesDialog = ({ id, title = id, onClose }) =>
  html`<${Dialog} title=${title} onClose=${onClose} wide><${Attributes} id=${id} /><//>`;
