// What can be done with a query; each says what it does to answers before it is done.

import { del, patch } from "../../lib/api.js";
import { Consequences } from "../../lib/attributes.js";
import { forgetHandle, readOnly } from "../../lib/session.js";
import { Confirm, Dialog, ErrorBox, Field } from "../../lib/widgets.js";
import { html, useEffect, useState } from "../../vendor/core.js";
import { queryPath } from "./access.js";

const DRY_RUN_AFTER_MS = 300;

/** What a change would do, as the broker says: `[told, error]`. */
const useDryRun = (id, handle, body) => {
  const [found, setFound] = useState([null, null]);
  const text = JSON.stringify(body);
  useEffect(() => {
    setFound([null, null]);
    if (body === null) return;
    const abort = new AbortController();
    const timer = setTimeout(
      () =>
        patch(queryPath(id, "?dry_run=true"), body, { handle, signal: abort.signal }).then(
          (told) => setFound([told, null]),
          (error) => error.name !== "AbortError" && setFound([null, error]),
        ),
      DRY_RUN_AFTER_MS,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [id, handle, text]);
  return found;
};

/** Changes options after it was told what that does. */
const Change = ({ id, handle, title, action, body, about, onDone, onClose, children }) => {
  const [told, error] = useDryRun(id, handle, body);
  return html`<${Confirm} title=${title} action=${action} onClose=${onClose} onDone=${async () => {
    await patch(queryPath(id), body, { handle });
    onDone();
  }}>
    <p>${about}</p>
    ${children}
    <${ErrorBox} error=${error} />
    <div aria-live="polite">${told ? html`<${Consequences} consequences=${told.consequences} />` : error ? null : html`<p class="dim">Asking what it does …</p>`}</div>
  <//>`;
};

const Pause = (props) => {
  const [release, setRelease] = useState(false);
  return html`<${Change} ...${props} title="Pause the query" action="Pause" body=${release ? { paused: true, release } : { paused: true }}
    about="It stays registered and has no answer until it is resumed. Whoever follows it hears nothing meanwhile.">
    <p><label><input type="checkbox" checked=${release} onChange=${(event) => setRelease(event.currentTarget.checked)} /> Release its rows too: they are not kept for its windows, so its answer may be incomplete afterwards</label></p>
  <//>`;
};

const Resume = (props) => html`<${Change} ...${props} title="Resume the query" action="Resume" body=${{ paused: false }}
  about="Its answer is built from the rows that are kept. Whoever follows it is told at once what changed since the pause." />`;

const Drop = ({
  id,
  handle,
  onClose,
}) => html`<${Confirm} title="Drop the query" action="Drop" danger=${true} onClose=${onClose} onDone=${async () => {
  await del(queryPath(id), { handle });
  forgetHandle(id);
  location.hash = "#/queries";
}}>
  <p><strong>This cannot be taken back.</strong> The query ends, all that follow it are told so, and its handle opens nothing any more. Rows that only it needed are let go. A query with the same text can be registered again, with another handle.</p>
<//>`;

const caretOf = (sql, { line, column }) => (line ? `${sql.split("\n")[line - 1] ?? ""}\n${" ".repeat(Math.max(0, column - 1))}^` : null);

/** sql: the text to begin with. now: the present one. */
const Alter = ({ id, handle, sql, now, onDone, onClose }) => {
  const [text, setText] = useState(sql);
  const [refused, setRefused] = useState(null);
  const [busy, setBusy] = useState(false);
  const isNew = text.trim() !== "" && text !== now;
  const [told, error] = useDryRun(id, handle, isNew ? { sql: text } : null);
  const apply = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await patch(queryPath(id), { sql: text }, { handle });
      onDone();
      onClose();
    } catch (failed) {
      setRefused(failed);
      setBusy(false);
    }
  };
  const wrong = refused ?? error;
  return html`<${Dialog} title="Alter the text" onClose=${onClose} wide=${true}>
    <form class="query-alter" onSubmit=${apply}>
      <${Field} label="Text" hint="It keeps its id, its handle and its options. Where the columns stay the same, those who follow it go on with the difference of both answers.">${(
        input,
        more,
      ) =>
        html`<textarea id=${input} aria-describedby=${more} class="mono" rows="6" spellcheck=${false} value=${text} onInput=${(event) => {
          setText(event.currentTarget.value);
          setRefused(null);
        }}></textarea>`}<//>
      ${wrong?.line && html`<pre class="query-caret" aria-hidden="true">${caretOf(text, wrong)}</pre>`}
      <${ErrorBox} error=${wrong} />
      <div aria-live="polite">${told ? html`<${Consequences} consequences=${told.consequences} />` : isNew && !wrong ? html`<p class="dim">Asking what it does …</p>` : null}</div>
      <footer><button type="button" onClick=${onClose}>Cancel</button><button class="main" disabled=${busy || !isNew || Boolean(error)}>${busy ? "…" : "Apply"}</button></footer>
    </form>
  <//>`;
};

/** Buttons of a query. text: as it is now, parameters filled in. altering: a text to begin altering with; null: none. onAltering(text|null). onChanged(): something was done. */
export const Actions = ({ id, handle, query, text, altering, onAltering, onChanged }) => {
  const [open, setOpen] = useState(null);
  if (readOnly.value) return html`<span class="dim">read only</span>`;
  const close = () => setOpen(null);
  const shared = { id, handle, onDone: onChanged, onClose: close };
  return html`
    ${query.paused ? html`<button type="button" onClick=${() => setOpen("resume")}>Resume</button>` : html`<button type="button" onClick=${() => setOpen("pause")}>Pause</button>`}
    <button type="button" disabled=${handle === null} title=${handle === null ? "takes the handle" : undefined} onClick=${() => onAltering(text)}>Alter text</button>
    <button type="button" class="danger" onClick=${() => setOpen("drop")}>Drop</button>
    ${open === "pause" && html`<${Pause} ...${shared} />`}
    ${open === "resume" && html`<${Resume} ...${shared} />`}
    ${open === "drop" && html`<${Drop} id=${id} handle=${handle} onClose=${close} />`}
    ${altering !== null && html`<${Alter} id=${id} handle=${handle} sql=${altering} now=${text} onDone=${onChanged} onClose=${() => onAltering(null)} />`}`;
};
