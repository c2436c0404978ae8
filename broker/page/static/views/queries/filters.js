// Which queries are wanted: a search, and filters.

import { get, queryString } from "../../lib/api.js";
import { status } from "../../lib/status.js";
import { Field, useLoaded } from "../../lib/widgets.js";
import { html, useEffect, useRef, useState } from "../../vendor/core.js";

const TYPED_MS = 250;

/** An input that says what was typed once one stops. */
const Typed = ({ value, onTyped, ...rest }) => {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const told = useRef(value);
  useEffect(() => {
    if (value !== told.current) setText(value);
    told.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const tell = (now) => {
    clearTimeout(timer.current);
    told.current = now;
    onTyped(now);
  };
  const typed = (event) => {
    const now = event.currentTarget.value;
    setText(now);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => tell(now), TYPED_MS);
  };
  return html`<input ...${rest} value=${text} onInput=${typed} onKeyDown=${(event) => event.key === "Enter" && tell(event.currentTarget.value)} />`;
};

const Choice = ({ label, value, options, onChoice }) => html`<${Field} label=${label}>
  ${(id) => html`<select id=${id} value=${value} onChange=${(event) => onChoice(event.currentTarget.value)}><option value="">any</option>${options.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>`}
<//>`;

/** @param {{wanted: Record<string, string>, change: (changes: Record<string, string>) => void}} given */
export const Filters = ({ wanted, change }) => {
  const names = (status.value?.sources ?? []).map((one) => one.name);
  return html`<form class="queries-filters" role="search" aria-label="Queries" onSubmit=${(event) => event.preventDefault()}>
    <${Field} label="Search">
      ${(id) => html`<${Typed} id=${id} type="search" maxlength="1000" placeholder="words in the text, parameters, id, source" value=${wanted.search} onTyped=${(search) => change({ search })} />`}
    <//>
    <${Choice} label="State" value=${wanted.state} options=${["RUNNING", "PAUSED", "PENDING", "ERROR"]} onChoice=${(state) => change({ state })} />
    <${Field} label="Source">
      ${(id) => html`<${Typed} id=${id} list="sources-of-queries" placeholder="any" value=${wanted.source} onTyped=${(source) => change({ source })} /><datalist id="sources-of-queries">${names.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>`}
    <//>
    <${Choice} label="Maintenance" value=${wanted.maintenance} options=${["none", "lazy", "eager", "auto"]} onChoice=${(maintenance) => change({ maintenance })} />
  </form>`;
};

/** The shape whose queries are shown, and the way back to all. */
export const ShapeChip = ({ shape, clear }) => {
  const [found] = useLoaded((signal) => get(`shapes${queryString({ shape, limit: 1 })}`, { signal }), [shape]);
  const text = found?.shapes?.[0]?.sql;
  return html`<div class="shape-chip"><span>Of the shape</span> <code title=${text}>${text ?? shape}</code> <button type="button" class="small" onClick=${clear}>Show all shapes</button></div>`;
};
