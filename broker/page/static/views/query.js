// One query: its answer, its past, what it costs, and what can be done with it.

import { get } from "../lib/api.js";
import { Attributes } from "../lib/attributes.js";
import { Remarks } from "../lib/remarks.js";
import { forgetHandle, handleOf } from "../lib/session.js";
import { filled, isOrdered, Sql } from "../lib/sql.js";
import { count } from "../lib/units.js";
import { Badge, Card, Copy, ErrorBox, Instant, Tabs, useLoaded } from "../lib/widgets.js";
import { html, useEffect, useState } from "../vendor/core.js";
import { HandleForm, queryPath } from "./query/access.js";
import { Actions } from "./query/actions.js";
import { Answer } from "./query/answer.js";
import { Cost } from "./query/cost.js";
import { History } from "./query/history.js";
import { Tags } from "./query/tags.js";

const AGAIN_MS = 5_000;
/** While a source is catching up. */
const SOON_MS = 1_000;
const TABS = [
  { id: "answer", title: "Answer" },
  { id: "history", title: "History" },
  { id: "cost", title: "Plan and cost" },
  { id: "options", title: "Options" },
];

const toleranceOf = ({ tolerance, approximation }) =>
  Object.entries(tolerance)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ") || (approximation?.length ? "none beyond what its text says" : "none: it is to be exact");

const Facts = ({ id, query }) => html`<dl class="facts">
  <dt>Query id</dt><dd><code>${id}</code> <${Copy} text=${id} /></dd>
  <dt>Sources</dt><dd>${query.sources.map((name, place) => html`${place ? ", " : ""}<a key=${name} href=${`#/sources/${encodeURIComponent(name)}`}>${name}</a>`)}${query.uses?.length ? html` <span class="dim">by the views ${query.uses.join(", ")}</span>` : null}</dd>
  <dt>Position</dt><dd><code>${query.position ?? "–"}</code> ${query.born && html`<span class="dim">since ${query.born}</span>`}</dd>
  <dt>Maintenance</dt><dd>${query.maintenance}, strategy ${query.strategy}, weight ${query.weight}${query.notice ? html` <span class="warn">${query.notice}</span>` : null}</dd>
  <dt>Tolerance</dt><dd>${toleranceOf(query)}${query.unreachable ? html` <span class="warn">${query.unreachable.message}</span>` : null}</dd>
  <dt>Lost records</dt><dd class=${query.late || query.dead_letters ? "warn" : ""}>${count(query.late ?? 0)} late, ${count(query.dead_letters ?? 0)} dead letters ${query.counted_from_ms && html`<span class="dim">since <${Instant} ms=${query.counted_from_ms} /> UTC</span>`}</dd>
  ${query.output && html`<dt>Emits to</dt><dd><code>${query.output.topic}</code> <span class="dim">${query.output.format}, ${query.output.operator}; ${count(query.output.waiting ?? 0)} changes wait</span></dd>`}
</dl>`;

const Gone = ({
  id,
}) => html`<p class="error" role="alert"><strong>There is no query with this id.</strong> It was dropped, or it never was. <a href="#/queries">All queries</a>
  ${handleOf(id) && html` <button type="button" class="small" onClick=${() => forgetHandle(id)}>Forget its handle in this tab</button>`}</p>`;

const Locked = ({ id, error }) => html`
  <h1>Query <code>${id}</code></h1>
  ${error.code === "handle_needed" ? html`<${Card} title="The handle is needed"><${HandleForm} id=${id} why="Whoever is not the operator sees a query by its handle." /><//>` : error.status === 404 ? html`<${Gone} id=${id} />` : html`<${ErrorBox} error=${error} />`}`;

const Shown = ({ tab, id, handle, query, turn, onTab, onUse, onChanged, onState }) => {
  if (tab === "cost") return html`<${Cost} key=${turn} id=${id} handle=${handle} onUse=${handle === null ? null : onUse} />`;
  if (tab === "options") return html`<${Card} title="Options"><${Attributes} id=${`query/${id}`} onChanged=${onChanged} /><//>`;
  if (handle === null)
    return html`<${Card} title=${tab === "history" ? "History" : "Answer"}><${HandleForm} id=${id} why="The answer of a query opens with its handle, which its owner was given as it was registered." /><//><${Card} title="How exact it is"><${Tags} tags=${query.approximation} /><//>`;
  if (tab === "history") return html`<${History} id=${id} handle=${handle} sources=${query.sources} onLive=${() => onTab("answer")} />`;
  return html`<${Answer} id=${id} handle=${handle} isOrdered=${isOrdered(query.sql)} anew=${query.sql} onState=${onState} />`;
};

export const QueryView = ({ route }) => {
  const id = route.path[1];
  const tab = TABS.some((one) => one.id === route.params.get("tab")) ? route.params.get("tab") : "answer";
  const handle = handleOf(id);
  const [query, error, again] = useLoaded((signal) => get(queryPath(id), { handle, signal }), [id, handle]);
  const [altering, setAltering] = useState(null);
  const [turn, setTurn] = useState(0);
  const isGone = query !== null && error?.code === "unknown_query";
  const isBehind = Boolean(query?.catching_up?.length);
  useEffect(() => {
    if (isGone) return;
    const timer = setInterval(() => !document.hidden && again(), isBehind ? SOON_MS : AGAIN_MS);
    return () => clearInterval(timer);
  }, [id, isGone, isBehind]);
  if (!query) return error ? html`<${Locked} id=${id} error=${error} />` : html`<p class="loading">Loading …</p>`;
  const onTab = (one) => location.replace(`#/queries/${encodeURIComponent(id)}${one === "answer" ? "" : `?tab=${one}`}`);
  const onChanged = () => {
    again();
    setTurn((now) => now + 1);
  };
  const text = filled(query.sql, query.parameters);
  return html`
    <div class="heading">
      <h1>Query ${query.name ? query.name : html`<code class="id">${id}</code>`}</h1>
      <${Badge} state=${isGone ? "bad" : undefined}>${isGone ? "DROPPED" : query.state}<//>
      <div class="tools">
        ${!isGone && html`<${Actions} id=${id} handle=${handle} query=${query} text=${text} altering=${altering} onAltering=${setAltering} onChanged=${onChanged} />`}
        ${handle !== null && html`<button type="button" class="plain" title="This tab forgets the handle" onClick=${() => forgetHandle(id)}>Close the answer</button>`}
      </div>
    </div>
    ${isGone && html`<p class="error" role="alert"><strong>This query was dropped while you watched.</strong> Nothing here changes any more. <a href="#/queries">All queries</a></p>`}
    ${error && !isGone && error.status !== 0 && html`<${ErrorBox} error=${error} retry=${again} />`}
    ${query.error && html`<${ErrorBox} error=${query.error} />`}
    <${Remarks} of=${query} />
    <div class="grid wide">
      <${Card} title="Text" tools=${html`<${Copy} text=${text} />`}><${Sql} text=${query.sql} parameters=${query.parameters} /><//>
      <${Card} title="Facts"><${Facts} id=${id} query=${query} /><//>
    </div>
    <${Tabs} tabs=${TABS} selected=${tab} onSelect=${onTab} label="Parts of the query">
      <div class="query-stack"><${Shown} tab=${tab} id=${id} handle=${handle} query=${query} turn=${turn} onTab=${onTab} onUse=${setAltering} onChanged=${onChanged} onState=${again} /></div>
    <//>`;
};
