// The running plan, with data moving through it: all queries at once, one query's way, one record's way.

import { queryString } from "../lib/api.js";
import { AttributesDialog } from "../lib/attributes.js";
import { entities, entitiesError, movedAt, useEntities } from "../lib/entities.js";
import { live } from "../lib/status.js";
import { count } from "../lib/units.js";
import { Card, Empty, ErrorBox, Instant } from "../lib/widgets.js";
import { html, useEffect, useMemo, useRef, useState } from "../vendor/core.js";
import { Graph } from "./plan/graph.js";
import { drawnOf, nodesOf, othersOf, smoothed } from "./plan/model.js";
import { Panel } from "./plan/panel.js";
import { PickedCard, QuerySearch, usePicked } from "./plan/picked.js";
import { PlanTable } from "./plan/table.js";
import { placeOf, TraceCard, TraceForm, useTrace } from "./plan/trace.js";

const OTHERS_SHOWN = 60;

const NONE = new Set();
const go = (params) => (location.hash = `#/plan${queryString(params)}`);

/** The nodes that light up, by their keys in the drawing; null: none is dimmed. */
const litOf = (drawn, ids) =>
  ids === null ? null : new Set(drawn.nodes.filter((one) => one.members.some((member) => ids.has(member.id))).map((one) => one.key));

/** What the plan of a query says of edges, by "from\nto". */
const notesOf = (drawn, edges) => {
  const found = new Map();
  for (const edge of drawn.edges) {
    const said = edge.froms.map((id) => edges.get(id)).find(Boolean);
    if (said) found.set(`${edge.from}\n${edge.to}`, said);
  }
  return found;
};

export const PlanView = ({ route }) => {
  useEntities();
  const all = entities.value;
  const query = route.params.get("query");
  const entity = route.params.get("entity");
  const place = placeOf(route.params.get("trace"));
  const [opened, setOpened] = useState(NONE);
  const [selected, setSelected] = useState(null);
  const [asTable, setAsTable] = useState(false);
  const [shard, setShard] = useState("");
  const [analyzed, setAnalyzed] = useState({ query: null, turn: 0 });
  const [other, setOther] = useState(null);
  const analyze = analyzed.query === query;
  const [picked, pickedError] = usePicked(query, analyze, analyzed.turn);
  const [trace, traceError, traceAgain] = useTrace(place);

  const cpu = useRef(new Map());
  const nodes = useMemo(() => {
    cpu.current = smoothed(all, cpu.current);
    return nodesOf(all, cpu.current);
  }, [all]);
  const known = all.has(entity);
  useEffect(() => {
    if (!known) return;
    if (nodes.some((one) => one.id === entity)) setSelected(entity);
    else setOther(entity);
  }, [entity, known]);
  const shards = [...new Set(nodes.map((one) => one.shard))].sort((one, more) => Number(one) - Number(more));
  const ids = picked ? picked.way : trace ? new Set(trace.stages.flatMap((one) => one.entities)) : null;
  const drawn = useMemo(() => {
    const apart = new Set([...(ids && ids.size < 150 ? ids : NONE), ...(selected ? [selected] : [])]);
    return drawnOf(shard === "" ? nodes : nodes.filter((one) => one.shard === shard), { opened, apart });
  }, [nodes, opened, selected, shard, picked, trace]);
  const lit = litOf(drawn, ids);
  const notes = useMemo(() => notesOf(drawn, picked?.edges ?? new Map()), [drawn, picked]);

  const node = drawn.nodes.find((one) => one.key === selected);
  const readers = node?.members.length === 1 ? nodes.filter((one) => one.inputs.includes(node.key)).map((one) => one.id) : [];
  const unfold = (which) => {
    setOpened(new Set([...opened, which.key]));
    setSelected(null);
  };
  const open = (which) =>
    which.members.length > 1 && which.key !== selected ? unfold(which) : setSelected(which.key === selected ? null : which.key);
  const others = othersOf(all);
  const sources = [...new Set(nodes.filter((one) => one.type === "source").map((one) => one.name))].sort();

  return html`
    <div class="heading">
      <h1>Plan</h1>
      <span class="dim">${count(nodes.length)} nodes${drawn.folded ? `, ${count(drawn.folded)} of them folded with their like` : ""}${movedAt.value ? html`, as of <${Instant} ms=${movedAt.value} /> UTC` : null}</span>
      ${!live.value && movedAt.value ? html`<span class="warn">not live</span>` : null}
      <div class="tools">
        ${opened.size > 0 && html`<button type="button" onClick=${() => setOpened(NONE)}>Fold again</button>`}
        ${shards.length > 1 && html`<label class="plan-inline">Shard <select value=${shard} onChange=${(event) => setShard(event.currentTarget.value)}><option value="">all</option>${shards.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>`}
        <button type="button" aria-pressed=${asTable ? "true" : "false"} onClick=${() => setAsTable(!asTable)}>As a table</button>
      </div>
    </div>
    <div class="plan-pick"><${QuerySearch} onPick=${(id) => go({ query: id })} /><${TraceForm} key=${sources.length > 0} sources=${sources} place=${place} onTrace=${(text) => go({ trace: text })} /></div>
    <${ErrorBox} error=${all.size ? null : entitiesError.value} />
    <div class=${`plan ${node || query || place ? "with-side" : ""}`}>
      <section class="card plan-drawing" aria-label="The graph">
        ${
          nodes.length === 0
            ? html`<${Empty}>${all.size ? html`There is no source yet: nothing runs. <a href="#/sources">Create one</a>.` : "…"}<//>`
            : asTable
              ? html`<${PlanTable} drawn=${drawn} selected=${selected} lit=${lit} onOpen=${open} />`
              : html`<${Graph} drawn=${drawn} selected=${selected} lit=${lit} notes=${notes} onOpen=${open} />`
        }
        <p class="dim plan-legend">Edges are as wide as rows flow; dots are sampled rows; × is rows out for each that came; q is queries that share the node; the bar is its part of all computing time.${query ? " Of the picked query: MON rows leave by RETAIN alone, WKS in order, WK at a known time, STR at any time; ~ is estimated." : ""}</p>
      </section>
      ${
        (node || query || place) &&
        html`<div class="plan-side">
          ${node && html`<${Panel} key=${node.key} node=${node} readers=${readers} expected=${picked?.edges.get(node.key) ?? null} onPick=${setSelected} onUnfold=${unfold} onClose=${() => setSelected(null)} />`}
          ${query && html`<${PickedCard} id=${query} picked=${picked} error=${pickedError} analyze=${analyze} onAnalyze=${() => setAnalyzed({ query, turn: analyzed.turn + 1 })} onClear=${() => go({})} />`}
          ${place && html`<${TraceCard} place=${place} trace=${trace} error=${traceError} again=${traceAgain} onClear=${() => go({})} />`}
        </div>`
      }
    </div>
    ${
      others.length > 0 &&
      html`<${Card} title="Beside the graph" class="others"><p class="dim">Engines, schedulers, monitors, constraints and settings take part, but no rows flow through them.</p>
        <p>${others.slice(0, OTHERS_SHOWN).map((one) => html`<button type="button" class="small" key=${one.id} onClick=${() => setOther(one.id)}>${one.id}</button> `)}${others.length > OTHERS_SHOWN ? html`<span class="dim">and ${count(others.length - OTHERS_SHOWN)} more</span>` : null}</p>
      <//>`
    }
    ${other && html`<${AttributesDialog} id=${other} onClose=${() => setOther(null)} />`}`;
};
