// What the tables of queries and of shapes show.

import { filled } from "../../lib/sql.js";
import { bytes, count, duration, rate, share, short } from "../../lib/units.js";
import { Badge } from "../../lib/widgets.js";
import { html } from "../../vendor/core.js";

/** A tag of approximation in a few words: `sample 10 percent`. */
const tagWords = ({ kind, amount, unit }) =>
  [kind, amount ?? "", amount === null || amount === undefined ? "" : (unit ?? "")].filter((part) => part !== "").join(" ");
const tagTitle = (tag) =>
  Object.entries(tag)
    .map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join("\n");

const TEXT_MAX = 2_000;

const Text = ({ row }) => {
  if (row.state === "ENDED") return html`<span class="dim">ended since this list was made</span>`;
  const text = row.sql ? filled(row.sql.slice(0, TEXT_MAX), row.parameters) : "no text";
  return html`<span class="two-lines"><a class="mono" tabindex="-1" href=${`#/queries/${encodeURIComponent(row.query_id)}`} title=${text}>${row.name ? html`<strong>${row.name}</strong> ` : null}${text}</a></span>`;
};

const State = ({ row }) =>
  html`<span class="two-lines"><${Badge} title=${row.error?.message}>${row.state}<//>${(row.approximation ?? []).map((tag) => html` <${Badge} state="warn" title=${tagTitle(tag)}>${tagWords(tag)}<//>`)}</span>`;

const figure = (id, title, width, about, text) => ({
  id,
  title,
  width,
  about,
  number: true,
  sortable: true,
  render: (row) => text((row.statistics ?? row)[id] ?? null),
});

/** Of a hundred thousand queries each has little: two digits of it. */
const part = (value) =>
  value > 0 && value < 0.001
    ? `${Number((value * 100).toPrecision(2)).toFixed(Math.min(7, 1 - Math.floor(Math.log10(value * 100))))} %`
    : share(value);

const FIGURES = [
  figure("rows_per_s", "Rows in", 5, "Rows of its sources that entered, a second", (value) => rate(value)),
  figure("matches", "Matches", 5.5, "Rows that are held and its predicates accept", (value) => short(value)),
  figure("memory_bytes", "Memory", 5.5, "What it holds, with its part of what it shares", bytes),
  figure("cpu_share", "CPU", 5.5, "Its part of the computing time of all queries since the start", part),
  figure("behind_ms", "NOW behind", 7.5, "How far NOW of its answer is behind the newest record of its sources", duration),
];

export const QUERY_COLUMNS = [
  { id: "text", title: "Query", wide: true, width: 20, sortable: true, render: (row) => html`<${Text} row=${row} />` },
  { id: "state", title: "State", width: 7, sortable: true, render: (row) => html`<${State} row=${row} />` },
  {
    id: "sources",
    title: "Sources",
    width: 7,
    render: (row) => html`<span title=${(row.sources ?? []).join(", ")}>${(row.sources ?? []).join(", ")}</span>`,
  },
  ...FIGURES,
  {
    id: "maintenance",
    title: "Maintenance",
    width: 6.5,
    about: "How the answer is maintained: none, lazy or eager",
    render: (row) => row.maintenance ?? "",
  },
  {
    id: "id",
    title: "Id",
    width: 6,
    sortable: true,
    render: (row) => html`<span class="mono dim" title=${row.query_id}>${row.query_id}</span>`,
  },
];

export const SHAPE_COLUMNS = [
  {
    id: "sql",
    title: "Text without constants",
    wide: true,
    width: 20,
    sortable: true,
    render: (row) =>
      html`<span class="two-lines"><a class="mono" tabindex="-1" href=${`#/queries?shape=${encodeURIComponent(row.shape)}`} title=${row.sql}>${row.sql}</a></span>`,
  },
  { id: "queries", title: "Queries", width: 6, number: true, sortable: true, render: (row) => count(row.queries) },
  { id: "running", title: "Running", width: 6, number: true, sortable: true, render: (row) => count(row.running) },
  ...FIGURES,
];
