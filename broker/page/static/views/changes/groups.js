// The settable things that queries share, by group.

import { get, queryString } from "../../lib/api.js";
import { Attributes } from "../../lib/attributes.js";
import { usePolled } from "../../lib/polled.js";
import { bytes, count } from "../../lib/units.js";
import { Card, Empty, ErrorBox, Field } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";

const SHOWN_MAX = 100;
const AGAIN_MS = 10_000;

/** Of each group: what it is, and which entities are in it, by the name behind the shard. */
const GROUPS = [
  { title: "Schedulers", about: "Which batch a shard runs next.", holds: (name) => name === "scheduler" },
  { title: "Joins", about: "The order of probes, and whether combinations are kept.", holds: (name) => name.startsWith("join/") },
  { title: "Query SteMs", about: "The order in which predicates are tried.", holds: (name) => name.startsWith("query-stem/") },
  { title: "Summaries", about: "Where their zones end.", holds: (name) => name.startsWith("summary/") },
  { title: "Monitors", about: "How closely constraints of streams are observed.", holds: (name) => name.startsWith("monitor/") },
  { title: "Shards", about: "How much work a second queries with a preference get.", holds: (name) => name === "shard" },
  { title: "State buffers", about: "How operators of followed queries keep rows.", holds: (name) => name === "state-buffers" },
];

/** What stands behind the shard in an id. @param {string} id */
export const nameOf = (id) => id.replace(/^\d+\//, "");

const readAll = async (signal) => {
  const found = [];
  for (let after = ""; after !== null; ) {
    const page = await get(`entities${queryString({ queries: false, after, limit: 2_000 })}`, { signal });
    found.push(...page.entities);
    after = page.next;
  }
  return found;
};

/** One entity: its name and size; opened, its attributes. */
export const Opened = ({ id, title, note }) => {
  const [open, setOpen] = useState(false);
  return html`<details class="opened" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><code>${title}</code>${note ? html` <span class="dim">${note}</span>` : null}</summary>
    ${open && html`<${Attributes} id=${id} />`}
  </details>`;
};

const noteOf = ({ shard, statistics }) =>
  [
    `shard ${shard}`,
    statistics.queries ? `${count(statistics.queries)} ${statistics.queries === 1 ? "query" : "queries"}` : null,
    statistics.memory_bytes ? bytes(statistics.memory_bytes) : null,
  ]
    .filter(Boolean)
    .join(" · ");

const Group = ({ title, about, members }) => {
  const shown = members.slice(0, SHOWN_MAX);
  return html`<${Card} title=${title} tools=${html`<span class="badge">${count(members.length)}</span>`}>
    <p class="dim">${about}</p>
    ${shown.map((one) => html`<${Opened} key=${one.id} id=${one.id} title=${nameOf(one.id)} note=${noteOf(one)} />`)}
    ${members.length > shown.length ? html`<p class="dim">${count(shown.length)} of ${count(members.length)} are shown: search for the others.</p>` : null}
  <//>`;
};

export const GroupsOfSettings = () => {
  const [entities, error, again] = usePolled(readAll, [], AGAIN_MS);
  const [search, setSearch] = useState("");
  if (!entities) return error ? html`<${ErrorBox} error=${error} retry=${again} />` : html`<p class="loading">…</p>`;
  const wanted = search.toLowerCase();
  const found = entities.filter((one) => one.id.toLowerCase().includes(wanted));
  const groups = GROUPS.map((group) => ({ ...group, members: found.filter((one) => group.holds(nameOf(one.id))) })).filter(
    (group) => group.members.length,
  );
  return html`<section aria-label="Settings of what queries share" class="settings">
    <div class="heading">
      <h2>What queries share</h2>
      <div class="tools"><${Field} label="Search by name">${(id) => html`<input id=${id} type="search" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} />`}<//></div>
    </div>
    ${error && html`<${ErrorBox} error=${error} retry=${again} />`}
    ${groups.length ? html`<div class="grid wide">${groups.map((group) => html`<${Group} key=${group.title} ...${group} />`)}</div>` : html`<${Empty}>Nothing here has “${search}” in its name.<//>`}
  </section>`;
};
