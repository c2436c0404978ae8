// One query picked out of all plans: its way, what its plan expects of each edge, and how it is found.

import { entityPath, get, queryString } from "../../lib/api.js";
import { ExplainTree } from "../../lib/explain.js";
import { handleOf } from "../../lib/session.js";
import { Sql } from "../../lib/sql.js";
import { count, rate, share, short } from "../../lib/units.js";
import { Badge, Card, Empty, ErrorBox, Field, useLoaded } from "../../lib/widgets.js";
import { html, useEffect, useRef, useState } from "../../vendor/core.js";

const SEARCH_AFTER_MS = 200;
const FOUND_MAX = 8;

/** "1 % false, 2 % missing": the expected precision of an edge. @param {any} expected */
export const precision = (expected) => {
  if (!expected) return "exact";
  const { fp, fn, error } = expected;
  const told = [fp ? `${share(fp)} false` : null, fn ? `${share(fn)} missing` : null, error ? `error ${share(error)}` : null].filter(
    Boolean,
  );
  return told.join(", ") || "exact";
};

const PATTERNS = {
  MON: "rows come, and go by RETAIN alone",
  WKS: "rows leave in the order they came",
  WK: "rows leave at a time that is known when they come",
  STR: "rows may leave at any time",
};

/** What the plan says of what leaves each operator, by the id of its entity. @param {any} plan @param {string} shard */
const edgesOf = (plan, shard) => {
  const found = new Map();
  const walk = (tree) => {
    if (!tree) return;
    const id = tree.state?.entity;
    const per_s = tree.cost?.rows_per_s;
    const text = `${PATTERNS[tree.pattern.split(" ")[0]] ?? ""}; ${precision(tree.expected)}${typeof per_s === "number" ? `; ${rate(per_s, "rows")} estimated` : ""}`;
    const said = {
      pattern: tree.pattern,
      expected: tree.expected,
      text: text.replace(/^; /, ""),
      short: `${tree.pattern}${tree.expected ? ` ${precision(tree.expected)}` : ""}${typeof per_s === "number" ? ` ~${short(Math.round(per_s))}/s` : ""}`,
    };
    if (id) found.set(`${shard}/${id}`, said);
    for (const below of tree.inputs ?? []) walk(below);
  };
  walk(plan.graph);
  return found;
};

/**
 * The way of a query: `{way: Set of ids, edges: Map, query, plan, error}`; null while there is none.
 * @param {string|null} id @param {boolean} analyze @param {number} turn another number asks again
 */
export const usePicked = (id, analyze, turn) => {
  const [found, error] = useLoaded(
    async (signal) => {
      if (!id) return null;
      const handle = handleOf(id);
      const [query, entity] = await Promise.all([
        get(`queries/${id}`, { signal, handle }),
        get(entityPath(`query/${id}`), { signal, handle }),
      ]);
      const plan = await get(`queries/${id}/plan${queryString({ analyze: analyze || null })}`, { signal, handle }).catch((refused) => {
        if (refused.code === "query_not_running") return null;
        throw refused;
      });
      return { id, query, plan, way: new Set(entity.reads), edges: plan ? edgesOf(plan, String(entity.shard)) : new Map() };
    },
    [id, analyze, turn],
  );
  return [found?.id === id ? found : null, id ? error : null];
};

/** Finds a query by words of its text, or by its id. onPick(id). */
export const QuerySearch = ({ onPick }) => {
  const [text, setText] = useState("");
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const abort = useRef(null);
  useEffect(() => {
    abort.current?.abort();
    if (!text.trim()) {
      setFound(null);
      return undefined;
    }
    const timer = setTimeout(() => {
      abort.current = new AbortController();
      get(`queries${queryString({ search: text.trim(), offset: 0, limit: FOUND_MAX })}`, { signal: abort.current.signal }).then(
        (page) => {
          setFound(page);
          setError(null);
        },
        (refused) => refused.name !== "AbortError" && setError(refused),
      );
    }, SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const close = () => {
    abort.current?.abort();
    setText("");
    setFound(null);
  };
  const pick = (id) => {
    close();
    onPick(id);
  };
  const onLeave = (event) => {
    if (!event.currentTarget.contains(event.relatedTarget)) setFound(null);
  };
  const onKey = (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && found?.queries.length) pick(found.queries[0].query_id);
  };
  return html`<div class="plan-search" onFocusOut=${onLeave}>
    <${Field} label="Pick a query, by its text or id">${(id) => html`<input id=${id} type="search" autocomplete="off" placeholder="words in the text, or the id" value=${text} onInput=${(event) => setText(event.currentTarget.value)} onKeyDown=${onKey} />`}<//>
    ${
      found &&
      html`<div class="plan-found" role="status">
      ${found.queries.length ? null : html`<${Empty}>No query has that.<//>`}
      <ul class="plan-list">${found.queries.map((one) => html`<li key=${one.query_id}><button type="button" class="plain" onClick=${() => pick(one.query_id)}><${Badge}>${one.state}<//> <code class="text">${one.sql ?? one.query_id}</code></button></li>`)}</ul>
      ${found.total > found.queries.length && html`<p class="dim">${count(found.total - found.queries.length)} more: say more words</p>`}
    </div>`
    }
    <${ErrorBox} error=${error} />
  </div>`;
};

/** The picked query beside the graph. */
export const PickedCard = ({ id, picked, error, analyze, onAnalyze, onClear }) => {
  const tools = html`<a href=${`#/queries/${id}`}>Its answer</a><button type="button" class="small" onClick=${onClear}>All plans</button>`;
  return html`<${Card} class="plan-picked" title="The picked query" tools=${tools}>
    <${ErrorBox} error=${error} />
    ${
      picked &&
      html`<p><${Badge}>${picked.query.state}<//> <code>${id}</code> <span class="dim">shares ${count(picked.way.size)} parts of the plan</span></p>
        ${picked.query.sql && html`<${Sql} text=${picked.query.sql} parameters=${picked.query.parameters} label="Its text" />`}
        ${picked.query.paused && html`<p class="dim">It is paused: nothing is kept for it, so it shares the engine alone.</p>`}
        ${picked.plan && !picked.plan.followed && html`<p class="dim">Nobody follows its changes, so it has no operators of its own: its answer is worked out from the rows when it is asked for.</p>`}
        ${
          picked.plan &&
          html`<details open=${analyze}><summary>Its plan, with estimates</summary>
          <p><button type="button" onClick=${onAnalyze}>Analyze</button> <span class="dim">evaluates the query once and measures each operator; the data of its stream waits meanwhile</span></p>
          <${ExplainTree} plan=${picked.plan} /></details>`
        }`
    }
    ${!picked && !error && html`<p class="dim">…</p>`}
  <//>`;
};
