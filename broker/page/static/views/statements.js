// Statements: an editor that knows the language, what a text means while it is typed, and what came of it.

import { ExplainTree } from "../lib/explain.js";
import { loadLanguage } from "../lib/language.js";
import { keepHandle, readOnly } from "../lib/session.js";
import { Sql, statements } from "../lib/sql.js";
import { restarts } from "../lib/status.js";
import { Badge, Card, Confirm, Empty, ErrorBox, Field } from "../lib/widgets.js";
import { html, useEffect, useRef, useState } from "../vendor/core.js";
import { Editor } from "./statements/editor.js";
import { examples } from "./statements/examples.js";
import {
  ask,
  check,
  checked,
  current,
  draft,
  emits,
  errorInDraft,
  errorPlace,
  forgetHistory,
  forgetShown,
  history,
  kindOf,
  loadSources,
  placeholders,
  results,
  run,
  sources,
  values,
  wording,
} from "./statements/model.js";
import { Registering } from "./statements/registering.js";
import { Result } from "./statements/results.js";

const PAUSE_MS = 300;
const REFUSED = {
  code: "read_only",
  message: "this page only looks, and the statement changes something",
  hint: "press Read only to edit, if your token may",
};

const changes = (text) => kindOf(text) !== "show";

/** The error under the caret, with a click for each name that may have been meant. */
const Refusal = ({ onReplace }) => {
  const found = checked.value;
  if (!found?.error || found.text !== current.value?.text) return null;
  const place = errorPlace.value;
  return html`<div class="refused">
    <${ErrorBox} error=${errorInDraft.value} />
    ${place?.offers.length > 0 && html`<div class="row" role="group" aria-label="Did you mean">${place.offers.map((offer) => html`<button type="button" class="small" key=${offer} onClick=${() => onReplace(place.from, place.to, offer)}>Write ${offer}</button>`)}</div>`}
  </div>`;
};

const Meaning = () => {
  const found = checked.value;
  const isOfNow = found?.text === current.value?.text;
  const told = found?.told;
  return html`<${Card} title="What it means" tools=${found && !isOfNow ? html`<span class="dim">being checked …</span>` : null}>
    ${!found && html`<${Empty}>${current.value && !wording(current.value.text) ? "Fill in the parameters below the editor: the plan depends on them." : "Type a statement: its columns and its plan are drawn here, and nothing is registered."}<//>`}
    ${found?.error && html`<p class="dim">It is refused; the reason stands below the editor.</p>`}
    ${told && told.columns.length > 0 && html`<p class="columns"><span class="dim">${told.kind === "create" ? "Columns" : "Gives"}</span> ${told.columns.map((one) => html`<span key=${one.name}><code>${one.name}</code> <span class="dim">${one.type}</span></span>`)}</p>`}
    ${(told?.warnings ?? []).map((one) => html`<p class="warn" key=${`${one.line} ${one.column}`}>Line ${one.line}, column ${one.column}: ${one.message}; <span class="dim">${one.hint}</span></p>`)}
    ${told?.plan && html`<${ExplainTree} plan=${told.plan} />`}
    ${told?.plan_error && html`<p class="warn">No plan at present: ${told.plan_error.message}. The text itself is right.</p>`}
    ${told && !told.plan && !told.plan_error && told.columns.length === 0 && html`<p><${Badge} state="good">right<//> a statement of the kind ${told.kind.replaceAll("_", " ")}</p>`}
  <//>`;
};

const Parameters = () => {
  const names = placeholders(current.value?.text ?? "");
  if (!names.length) return null;
  return html`<fieldset class="parameters">
    <legend>Parameters of this template</legend>
    <div class="grid">
      ${names.map(
        (name) => html`<${Field} key=${name} label=${/^\d+$/.test(name) ? `Value ${name}` : `:${name}`} hint="5, 2.5, true, null or text">
          ${(id, more) => html`<input id=${id} aria-describedby=${more} value=${values.value[name] ?? ""} onInput=${(event) => (values.value = { ...values.value, [name]: event.currentTarget.value })} />`}
        <//>`,
      )}
    </div>
  </fieldset>`;
};

const Beginnings = ({ onUse }) => html`<${Card} title="To begin with">
  <ul class="beginnings">
    ${examples(sources.value ?? []).map((one) => html`<li key=${one.title}><button type="button" class="plain" onClick=${() => onUse(one.sql)}><strong>${one.title}</strong> <span class="dim">${one.about}</span></button></li>`)}
  </ul>
  ${
    history.value.length > 0 &&
    html`<details>
      <summary>${history.value.length} ${history.value.length === 1 ? "statement" : "statements"} of this tab</summary>
      <ul class="beginnings">${history.value.map((one) => html`<li key=${one}><button type="button" class="plain" onClick=${() => onUse(one)}><${Sql} text=${one.slice(0, 300)} inline /></button></li>`)}</ul>
      <p class="dim">Handles are left out. <button type="button" class="small" onClick=${forgetHistory}>Forget them</button></p>
    </details>`
  }
<//>`;

export const StatementsView = () => {
  const editor = useRef(null);
  const [asking, setAsking] = useState(null);
  const [refusal, setRefusal] = useState(null);
  const text = current.value?.text ?? "";
  const all = statements(draft.value);
  const asked = JSON.stringify(placeholders(text).map((name) => values.value[name]));

  useEffect(() => {
    loadLanguage().catch(setRefusal);
    return forgetShown;
  }, []);
  useEffect(() => {
    loadSources().catch(setRefusal);
  }, [restarts.value]);
  useEffect(() => {
    const timer = setTimeout(check, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, asked, restarts.value]);

  const carryOut = async (one, registration) => {
    const told = await run(one, registration);
    if (told?.handle) keepHandle(told.query_id, told.handle);
    return told;
  };
  const allowed = (texts) => {
    const refused = readOnly.value && texts.some(changes);
    setRefusal(refused ? REFUSED : null);
    return !refused;
  };
  const runOne = () => {
    const statement = current.value;
    if (!statement || !allowed([statement.text])) return;
    const kind = kindOf(statement.text);
    if (kind === "query" && emits(statement.text)) setAsking({ register: statement.text });
    else if (kind === "query") ask(statement.text);
    else if (kind === "end") setAsking({ end: [statement.text] });
    else carryOut(statement.text);
  };
  const register = () => allowed([text]) && setAsking({ register: text });
  const runEach = async (texts) => {
    for (const one of texts) if (!(await carryOut(one))) break;
  };
  const runAll = () => {
    const texts = statements(draft.value).map((one) => one.text);
    if (!texts.length || !allowed(texts)) return;
    if (texts.some((one) => ["end", "query"].includes(kindOf(one))) && texts.length > 1) setAsking({ end: texts });
    else if (texts.length === 1) runOne();
    else runEach(texts);
  };
  const explain = () => carryOut(`EXPLAIN ${text}`);
  const use = (sql) => editor.current?.append(sql);
  const isQuery = kindOf(text) === "query";

  return html`
    <div class="heading"><h1>Statements</h1><span class="dim" id="statements-keys">Ctrl+Enter runs the statement at the caret and asks a SELECT once, Ctrl+Shift+Enter all of them, Ctrl+Space completes; Escape, then Tab leaves the editor.</span></div>
    <div class="statements">
      <div class="left">
        <${Card} title="Editor" tools=${html`
          ${!(isQuery && emits(text)) && html`<button type="button" class="main" disabled=${!text} title=${isQuery ? "Its rows as of now; nothing is left behind" : undefined} onClick=${runOne}>${isQuery ? "Ask once" : "Run"}</button>`}
          ${isQuery && html`<button type="button" class=${emits(text) ? "main" : ""} disabled=${!text} title="It stays, and its answer is kept ready" onClick=${register}>Register …</button>`}
          ${isQuery && html`<button type="button" disabled=${!text || placeholders(text).length > 0} title=${placeholders(text).length > 0 ? "EXPLAIN takes no parameters; the plan beside the editor does" : "Its plan and texts that use less, among the results"} onClick=${explain}>Explain</button>`}
          ${all.length > 1 && html`<button type="button" onClick=${runAll}>Run all ${all.length}</button>`}`}>
          <${Editor} handle=${editor} onRun=${runOne} onRunAll=${runAll} />
          <${Parameters} />
          <div aria-live="polite"><${Refusal} onReplace=${(from, to, offer) => editor.current?.replace(from, to, offer)} /></div>
          <${ErrorBox} error=${refusal} />
        <//>
        ${results.value.length === 0 && html`<${Beginnings} onUse=${use} />`}
        ${results.value.map((one) => html`<${Result} key=${one.id} result=${one} onUse=${use} />`)}
      </div>
      <div class="right">
        <${Meaning} />
        ${results.value.length > 0 && html`<${Beginnings} onUse=${use} />`}
      </div>
    </div>
    ${asking?.register && html`<${Registering} sql=${asking.register} onRegister=${carryOut} onClose=${() => setAsking(null)} />`}
    ${
      asking?.end &&
      html`<${Confirm} title=${asking.end.length > 1 ? `Run ${asking.end.length} statements` : "Run it"} action=${asking.end.length > 1 ? "Run all" : "Run"} danger=${asking.end.some((one) => kindOf(one) === "end")} onDone=${() => runEach(asking.end)} onClose=${() => setAsking(null)}>
        <p>${asking.end.some((one) => kindOf(one) === "end") ? "What is dropped is gone, with its answer. " : ""}${asking.end.some((one) => kindOf(one) === "query") ? "Each SELECT is registered with the usual options and a handle of its own. " : ""}${asking.end.length > 1 ? "They run in order, and the first that is refused ends it." : ""}</p>
        ${asking.end.slice(0, 10).map((one, place) => html`<p key=${place}><${Sql} text=${one} inline /></p>`)}
        ${asking.end.length > 10 && html`<p class="dim">and ${asking.end.length - 10} more</p>`}
      <//>`
    }`;
};
