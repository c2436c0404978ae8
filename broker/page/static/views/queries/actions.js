// What is done to several queries at once: pause, resume, drop.

import { get, patch, post, queryString } from "../../lib/api.js";
import { forgetHandle } from "../../lib/session.js";
import { count } from "../../lib/units.js";
import { Dialog, ErrorBox } from "../../lib/widgets.js";
import { html, useRef, useState } from "../../vendor/core.js";

/** So many can be selected at once, are dropped by one request, and are paused side by side. */
const SELECTED_MAX = 10_000;
const DROPPED_AT_ONCE = 500;
const SIDE_BY_SIDE = 4;
const REFUSALS_SHOWN = 20;

const ACTIONS = {
  pause: {
    verb: "Pause",
    past: "paused",
    about:
      "They stay registered and cost next to nothing. Their answers cannot be read, and their feeds and result topics are silent, until they are resumed; rows are kept for their windows.",
  },
  resume: {
    verb: "Resume",
    past: "resumed",
    about:
      "Their answers are built from the rows that are kept, and all that follow them are told by one difference what changed since the pause.",
  },
  drop: {
    verb: "Drop",
    past: "dropped",
    danger: true,
    about:
      "They end for good: their handles open nothing any more, feeds of their changes end, and their rows are taken back from result topics, one by one.",
  },
};

/** The ids of all queries that are like that, as far as they can be selected: `Map(id, text)`. */
const everyOne = async (wanted) => {
  const found = new Map();
  let paging = null;
  for (let offset = 0; offset < SELECTED_MAX; offset += 1_000) {
    const page = await get(`queries${queryString({ ...wanted, sort: "id", offset, limit: 1_000, paging })}`);
    paging = page.paging;
    for (const one of page.queries) if (one.query_id) found.set(one.query_id, one.sql);
    if (offset + 1_000 >= page.total) break;
  }
  return found;
};

const change = (id, paused) => patch(`queries/${encodeURIComponent(id)}`, { paused });

/** Do it to all; tell(done, refused) after each part. stop: `{current: boolean}`. */
const carryOut = async (action, ids, tell, stop) => {
  const refused = [];
  let done = 0;
  if (action === "drop") {
    for (let first = 0; first < ids.length && !stop.current; first += DROPPED_AT_ONCE) {
      const part = ids.slice(first, first + DROPPED_AT_ONCE);
      const found = await post("queries/unregister", { queries: part });
      for (const { place, error } of found.unknown) refused.push({ id: part[place], error });
      found.ended.forEach(forgetHandle);
      done += part.length;
      tell(done, [...refused]);
    }
    return;
  }
  const left = [...ids];
  const work = async () => {
    while (left.length && !stop.current) {
      const id = left.shift();
      try {
        await change(id, action === "pause");
      } catch (error) {
        if (error.status === 0 || error.status === 401 || error.status === 403) throw error;
        refused.push({ id, error });
      }
      done += 1;
      tell(done, [...refused]);
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
};

const Carried = ({ action, selected, onClose }) => {
  const { verb, past, about, danger } = ACTIONS[action];
  const [ids] = useState(() => [...selected.keys()]);
  const [state, setState] = useState({ begun: false, over: false, done: 0, refused: [], error: null });
  const stop = useRef(false);
  const go = async () => {
    setState((now) => ({ ...now, begun: true }));
    let error = null;
    try {
      await carryOut(action, ids, (done, refused) => setState((now) => ({ ...now, done, refused })), stop);
    } catch (failed) {
      error = failed;
    }
    setState((now) => ({ ...now, over: true, error }));
  };
  const close = () => {
    stop.current = true;
    onClose(state.begun);
  };
  const of = `${count(ids.length)} ${ids.length === 1 ? "query" : "queries"}`;
  return html`<${Dialog} title=${`${verb} ${of}`} onClose=${close}>
    <p>${about}</p>
    ${state.begun && html`<progress max=${ids.length} value=${state.done} aria-label=${`${verb} ${of}`}></progress><p role="status">${count(state.done - state.refused.length)} ${past}${state.refused.length ? `, ${count(state.refused.length)} refused` : ""}${state.over && state.done < ids.length ? `, ${count(ids.length - state.done)} left as they were` : ""}</p>`}
    <${ErrorBox} error=${state.error} />
    ${state.refused.length > 0 && html`<ul class="refused">${state.refused.slice(0, REFUSALS_SHOWN).map(({ id, error }) => html`<li key=${id}><code>${id}</code> ${error.message}${error.hint ? `: ${error.hint}` : ""}</li>`)}</ul>`}
    ${state.refused.length > REFUSALS_SHOWN && html`<p class="dim">and ${count(state.refused.length - REFUSALS_SHOWN)} more</p>`}
    <footer>
      ${state.over ? html`<button type="button" class="main" onClick=${close}>Close</button>` : html`<button type="button" onClick=${close}>${state.begun ? "Stop" : "Cancel"}</button>`}
      ${!state.over && html`<button type="button" class=${danger ? "danger" : "main"} disabled=${state.begun} onClick=${go}>${verb}</button>`}
    </footer>
  <//>`;
};

/** The bar above the table. done: what was shown is old. */
export const Actions = ({ selected, setSelected, wanted, total, done }) => {
  const [action, setAction] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const all = async () => {
    setBusy(true);
    setError(null);
    try {
      setSelected(await everyOne(wanted));
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  const close = (begun) => {
    setAction(null);
    if (!begun) return;
    setSelected(new Map());
    done();
  };
  const none = selected.size === 0;
  return html`<div class="queries-actions" role="group" aria-label="The selected queries">
      <span role="status">${none ? html`<span class="dim">None selected</span>` : `${count(selected.size)} selected`}</span>
      <button type="button" class="small" disabled=${busy || !total} onClick=${all}>${total > SELECTED_MAX ? `Select the first ${count(SELECTED_MAX)}` : `Select all ${count(total)}`}</button>
      <button type="button" class="small" disabled=${none} onClick=${() => setSelected(new Map())}>Select none</button>
      <span class="verbs">
        <button type="button" class="small" disabled=${none} onClick=${() => setAction("pause")}>Pause</button>
        <button type="button" class="small" disabled=${none} onClick=${() => setAction("resume")}>Resume</button>
        <button type="button" class="small danger" disabled=${none} onClick=${() => setAction("drop")}>Drop</button>
      </span>
    </div>
    <${ErrorBox} error=${error} />
    ${action && html`<${Carried} action=${action} selected=${selected} onClose=${close} />`}`;
};
