// The parts that all views are made of.
import { html, useEffect, useId, useRef, useState } from "../vendor/core.js";
import { instant, local } from "./units.js";

/** A titled box. tools: what stands at the right of the title. */
export const Card = ({ title, tools, children, class: more = "", level = 2, ...rest }) => html`
  <section class=${`card ${more}`} aria-label=${title} ...${rest}>
    ${(title || tools) && html`<header>${level === 2 ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`}<div class="tools">${tools}</div></header>`}
    ${children}
  </section>`;

/** One number with its name. state: "good", "warn" or "bad". href: the way to what is behind it. */
export const Figure = ({ name, value, unit, note, state = "", href, children }) => html`
  <div class=${`figure ${state}`}>
    <div class="name">${href ? html`<a href=${href}>${name}</a>` : name}</div>
    <div class="value">${value}${unit && html` <span class="unit">${unit}</span>`}</div>
    ${note && html`<div class="note">${note}</div>`}
    ${children}
  </div>`;

const STATES = { RUNNING: "good", LIVE: "good", ready: "good", live: "good", PAUSED: "dim", PENDING: "warn", ERROR: "bad", HELD: "bad" };

/** A word in a coloured frame. */
export const Badge = ({ children, state, title }) =>
  html`<span class=${`badge ${state ?? STATES[children] ?? ""}`} title=${title}>${children}</span>`;

/** An error of the API: message, hint, code. */
export const ErrorBox = ({ error, retry }) =>
  error &&
  html`<div class="error" role="alert">
    <p><strong>${error.message}</strong>${error.line ? html` <span class="dim">(line ${error.line}, column ${error.column})</span>` : null}</p>
    ${error.hint && html`<p>${error.hint}</p>`}
    <p class="dim"><code>${error.code ?? "error"}</code>${retry && html` <button type="button" class="small" onClick=${retry}>Try again</button>`}</p>
  </div>`;

/** What stands where nothing is. */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** An instant in UTC, with local time as its tooltip. */
export const Instant = ({ ms }) =>
  html`<time title=${local(ms)} datetime=${ms > 0 && ms < 8e15 ? new Date(ms).toISOString() : undefined}>${instant(ms)}</time>`;

/** Copies a text. */
export const Copy = ({ text, label = "Copy" }) => {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return html`<button type="button" class="small" onClick=${copy}>${done ? "Copied" : label}</button>`;
};

/** A labelled input. children: the input, given as a function of its id. */
export const Field = ({ label, hint, error, children }) => {
  const id = useId();
  return html`<div class=${`field ${error ? "bad" : ""}`}>
    <label for=${id}>${label}</label>
    ${children(id, error || hint ? `${id}-more` : undefined)}
    ${(error || hint) && html`<div id=${`${id}-more`} class=${error ? "refusal" : "dim"} role=${error ? "alert" : undefined}>${error ?? hint}</div>`}
  </div>`;
};

/** A modal dialog; onClose: Escape, or outside. */
export const Dialog = ({ title, onClose, children, wide = false }) => {
  const ref = useRef(null);
  const id = useId();
  useEffect(() => {
    const before = /** @type {HTMLElement|null} */ (document.activeElement);
    ref.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog
    ref=${ref}
    class=${wide ? "wide" : ""}
    aria-labelledby=${id}
    onClose=${onClose}
    onCancel=${(event) => {
      event.preventDefault();
      onClose();
    }}
    onClick=${(event) => event.target === ref.current && onClose()}
  >
    <div class="inside">
      <header><h2 id=${id}>${title}</h2><button type="button" class="plain" aria-label="Close" onClick=${onClose}>✕</button></header>
      ${children}
    </div>
  </dialog>`;
};

/** Asks before something is done. action: the verb on the button. onDone: an async function; its error is shown here. */
export const Confirm = ({ title, action, danger = false, onDone, onClose, children }) => {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const go = async () => {
    setBusy(true);
    try {
      await onDone();
      onClose();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${children}
    <${ErrorBox} error=${error} />
    <footer>
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class=${danger ? "danger" : "main"} disabled=${busy} onClick=${go}>${busy ? "…" : action}</button>
    </footer>
  <//>`;
};

/** Tabs with the keys of the pattern: arrows, Home, End. tabs: `[{id, title}]`. */
export const Tabs = ({ tabs, selected, onSelect, label, children }) => {
  const base = useId();
  const move = (event) => {
    const at = tabs.findIndex((one) => one.id === selected);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    onSelect(next.id);
    document.getElementById(`${base}-${next.id}`)?.focus();
  };
  return html`<div class="tabs">
    <div role="tablist" aria-label=${label} onKeyDown=${move}>
      ${tabs.map(
        ({ id, title }) => html`<button
          type="button"
          key=${id}
          id=${`${base}-${id}`}
          role="tab"
          aria-selected=${id === selected}
          aria-controls=${`${base}-panel`}
          tabindex=${id === selected ? 0 : -1}
          onClick=${() => onSelect(id)}
        >${title}</button>`,
      )}
    </div>
    <div role="tabpanel" id=${`${base}-panel`} aria-labelledby=${`${base}-${selected}`}>${children}</div>
  </div>`;
};

/** A bar of a share of a whole, 0 to 1. */
export const Bar = ({ value, label, state = "" }) =>
  html`<span class=${`bar ${state}`} role="img" aria-label=${label}><span style=${{ width: `${Math.min(100, Math.max(0, (value ?? 0) * 100))}%` }}></span></span>`;

/** Something that is loaded once the component is shown, and again when one of `deps` changes: `[value, error, again]`. */
export const useLoaded = (load, deps) => {
  const [found, setFound] = useState([null, null]);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).then(
      (value) => !abort.signal.aborted && setFound([value, null]),
      (error) => !abort.signal.aborted && setFound(([value]) => [value, error]),
    );
    return () => abort.abort();
  }, [...deps, turn]);
  return [...found, () => setTurn((now) => now + 1)];
};
