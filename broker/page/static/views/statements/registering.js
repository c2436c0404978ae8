// A SELECT becomes a standing query: what is asked before it does.

import { language, loadLanguage } from "../../lib/language.js";
import { Sql } from "../../lib/sql.js";
import { Dialog, ErrorBox, Field } from "../../lib/widgets.js";
import { html, useEffect, useState } from "../../vendor/core.js";
import { emits } from "./model.js";

const SHOWN = ["maintenance", "weight", "max_fp", "max_fn", "max_error", "latency_ms_max", "strategy"];
const HANDLE = /^[A-Za-z0-9._~-]{22,200}$/;

const Option = ({ option, value, onValue }) => {
  const label = option.name + (option.unit ? `, ${option.unit}` : "");
  return html`<${Field} label=${label} hint=${`${option.about}${option.accepts ? `: ${option.accepts}` : ""}`}>
    ${(id, more) =>
      option.choices.length
        ? html`<select id=${id} aria-describedby=${more} value=${value} onChange=${(event) => onValue(event.currentTarget.value)}>
            ${option.choices.map((one) => html`<option key=${one} value=${one === option.default ? "" : one}>${one}</option>`)}
          </select>`
        : html`<input id=${id} aria-describedby=${more} inputmode="decimal" placeholder=${option.default ?? "not set"} value=${value} onInput=${(event) => onValue(event.currentTarget.value)} />`}
  <//>`;
};

/**
 * Asks for handle, options and where changes go. onRegister(sql, {handle?, options?}): null where it was refused.
 * @param {{sql: string, onRegister: (sql: string, registration: object) => Promise<any>, onClose: () => void}} props
 */
export const Registering = ({ sql, onRegister, onClose }) => {
  const [handle, setHandle] = useState("");
  const [options, setOptions] = useState({});
  const [topic, setTopic] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  useEffect(() => {
    loadLanguage().catch(setError);
  }, []);
  const wrong = handle && !HANDLE.test(handle) ? "22 to 200 characters of A-Z a-z 0-9 - _ . ~" : null;
  const text = topic === null ? sql : `${sql}\nEMIT CHANGES${topic.trim() ? ` INTO ${topic.trim()}` : ""}`;
  const known = (language.value?.registration ?? []).filter((one) => SHOWN.includes(one.name));

  const register = async (event) => {
    event.preventDefault();
    if (wrong) return;
    setBusy(true);
    const given = Object.entries(options).filter(([, value]) => value.trim() !== "");
    const typed = given.map(([name, value]) => [name, Number.isFinite(Number(value)) ? Number(value) : value.trim()]);
    await onRegister(text, { ...(handle ? { handle } : {}), ...(typed.length ? { options: Object.fromEntries(typed) } : {}) });
    onClose();
  };

  return html`<${Dialog} title="Register a query" onClose=${onClose} wide>
    <form onSubmit=${register}>
      <p>The query stands until it is dropped: its answer is kept current, and whoever has the handle can fetch it.</p>
      <div class="scroll" tabindex="0" role="region" aria-label="Text of the query"><${Sql} text=${text} /></div>
      <${Field} label="Handle" error=${wrong} hint="the secret that opens the answer; left empty, the broker makes one and it is shown once">
        ${(id, more) => html`<input id=${id} class="mono" aria-describedby=${more} autocomplete="off" spellcheck=${false} value=${handle} onInput=${(event) => setHandle(event.currentTarget.value.trim())} />`}
      <//>
      ${
        !emits(sql) &&
        html`<div class="row">
          <label><input type="checkbox" checked=${topic !== null} onChange=${(event) => setTopic(event.currentTarget.checked ? "" : null)} /> Write its changes to a topic (EMIT CHANGES)</label>
          ${topic !== null && html`<${Field} label="Name of the topic" hint="empty: the one that all queries share">${(id, more) => html`<input id=${id} aria-describedby=${more} value=${topic} onInput=${(event) => setTopic(event.currentTarget.value)} />`}<//>`}
        </div>`
      }
      <details>
        <summary>Options</summary>
        <div class="grid">${known.map((one) => html`<${Option} key=${one.name} option=${one} value=${options[one.name] ?? ""} onValue=${(value) => setOptions({ ...options, [one.name]: value })} />`)}</div>
      </details>
      <${ErrorBox} error=${error} />
      <footer>
        <button type="button" onClick=${onClose}>Cancel</button>
        <button class="main" disabled=${busy || wrong !== null}>Register</button>
      </footer>
    </form>
  <//>`;
};
