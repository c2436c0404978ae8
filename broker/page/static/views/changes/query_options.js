// Options of queries, found by search.

import { get, queryString } from "../../lib/api.js";
import { filled } from "../../lib/sql.js";
import { count } from "../../lib/units.js";
import { Card, Empty, ErrorBox, Field, useLoaded } from "../../lib/widgets.js";
import { html, useEffect, useState } from "../../vendor/core.js";
import { Opened } from "./groups.js";

const SHOWN_MAX = 10;
const AFTER_MS = 250;
const TEXT_MAX = 120;

const textOf = ({ sql, parameters }) => {
  if (!sql) return "its text is not known";
  const text = filled(sql.slice(0, 10 * TEXT_MAX), parameters);
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
};

export const QueryOptions = () => {
  const [typed, setTyped] = useState("");
  const [search, setSearch] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSearch(typed), AFTER_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const load = (signal) => get(`queries${queryString({ search, offset: 0, limit: SHOWN_MAX })}`, { signal });
  const [found, error, again] = useLoaded(load, [search]);
  return html`<${Card} title="Queries" class="queries">
    <${Field} label="Search in texts, ids and sources" hint="What a query is given, how its answer is maintained, its weight, what it tolerates.">
      ${(id, more) => html`<input id=${id} aria-describedby=${more} type="search" value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} />`}
    <//>
    <${ErrorBox} error=${error} retry=${again} />
    ${found?.queries.map((one) => {
      const text = textOf(one);
      return html`<div class="query" key=${one.query_id}>
        <${Opened} id=${`query/${one.query_id}`} title=${text} note=${one.state} />
        <a href=${`#/changes/plan/${one.query_id}`} aria-label=${`Edit the plan of ${text}`}>Edit plan</a>
        <a href=${`#/queries/${one.query_id}`} aria-label=${`Open ${text}`}>Open</a>
      </div>`;
    })}
    ${found && !found.queries.length ? html`<${Empty}>No query is found.<//>` : null}
    ${found && found.total > found.queries.length ? html`<p class="dim">${count(found.queries.length)} of ${count(found.total)}: <a href=${`#/queries${queryString({ search })}`}>all of them</a>.</p>` : null}
  <//>`;
};
