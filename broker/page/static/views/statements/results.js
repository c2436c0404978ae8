// What came of statements: tables, plans, registered queries with their handle, refusals.

import { ExplainTree } from "../../lib/explain.js";
import { Remarks } from "../../lib/remarks.js";
import { Sql } from "../../lib/sql.js";
import { count } from "../../lib/units.js";
import { Badge, Card, Copy, ErrorBox, Instant } from "../../lib/widgets.js";
import { html } from "../../vendor/core.js";
import { Tags } from "../query/tags.js";

const ROWS_MAX = 1_000;

const cell = (value) =>
  value === null || value === undefined
    ? html`<span class="dim">NULL</span>`
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);

/** A table of an answer. @param {{columns: string[], rows: any[][], label: string}} props */
export const ResultTable = ({ columns, rows, label }) => {
  const numbers = columns.map((_, place) => rows.length > 0 && rows.every((row) => row[place] === null || typeof row[place] === "number"));
  return html`<div class="scroll table" tabindex="0" role="region" aria-label=${label}>
      <table>
        <thead><tr>${columns.map((name, place) => html`<th key=${place} scope="col" class=${numbers[place] ? "number" : ""}>${name}</th>`)}</tr></thead>
        <tbody>${rows.slice(0, ROWS_MAX).map((row, line) => html`<tr key=${line}>${row.map((value, place) => html`<td key=${place} class=${numbers[place] ? "number" : String(value).length > 40 ? "long" : ""}>${cell(value)}</td>`)}</tr>`)}</tbody>
      </table>
    </div>
    <p class="dim">${count(rows.length)} ${rows.length === 1 ? "row" : "rows"}${rows.length > ROWS_MAX ? `, of which the first ${count(ROWS_MAX)} are shown` : ""}</p>`;
};

/** The answer to a SELECT that was asked once. */
const Answered = ({ told }) => html`
  <${ResultTable} columns=${told.columns.map((one) => one.name)} rows=${told.rows} label="Rows of the answer" />
  <p class="dim">${told.rows_total > told.rows.length ? `The first of ${count(told.rows_total)} rows; ` : ""}as of NOW <${Instant} ms=${told.now_ms} /> UTC. It was asked once, and nothing of it stays.</p>
  ${told.complete_from_ms != null && html`<p class="warn">The answer is not complete: it is from <${Instant} ms=${told.complete_from_ms} /> UTC on.</p>`}
  <${Remarks} of=${told} />
  <${Warnings} warnings=${told.warnings ?? []} />
  ${told.approximation?.length > 0 && html`<${Tags} tags=${told.approximation} />`}`;

const Warnings = ({ warnings }) =>
  warnings.map(
    (one) => html`<p class="warn" key=${one.code}>${one.message}${one.hint ? html` <span class="dim">${one.hint}</span>` : null}</p>`,
  );

const Registered = ({ told }) => html`
  <p><${Badge}>${told.state}<//> query <a href=${`#/queries/${encodeURIComponent(told.query_id)}`}><code>${told.query_id}</code></a></p>
  ${
    told.handle
      ? html`<div class="row handle">
          <div class="field"><span class="dim">Handle: the secret that opens its answer. It is shown here once; this tab keeps it until it is closed.</span><code>${told.handle}</code></div>
          <${Copy} text=${told.handle} label="Copy handle" />
        </div>`
      : html`<p class="dim">This tab keeps its handle.</p>`
  }
  <${Warnings} warnings=${told.warnings ?? []} />
  <${ErrorBox} error=${told.error} />`;

const Done = ({ told }) => {
  const facts = Object.entries(told).filter(([name, value]) => value !== null && typeof value !== "object" && name !== "sql");
  return html`
    ${told.sql && told.topic_existed !== undefined && html`<p class="dim">Its columns were inferred from records of the topic. It means:</p><${Sql} text=${told.sql} />`}
    <dl class="facts">${facts.map(([name, value]) => [html`<dt>${name.replaceAll("_", " ")}</dt>`, html`<dd>${String(value)}</dd>`])}</dl>
    <${Warnings} warnings=${told.warnings ?? []} />
    ${told.error && html`<${ErrorBox} error=${told.error} />`}`;
};

const Proposals = ({ proposals, onUse }) =>
  proposals?.length > 0 &&
  html`<details>
    <summary>${proposals.length} ${proposals.length === 1 ? "text uses" : "texts use"} less</summary>
    ${proposals.map(
      (one, place) => html`<div key=${place} class="proposal">
        <p><strong>${one.rule}</strong>: ${one.change}</p>
        <${Sql} text=${one.sql} />
        <button type="button" class="small" onClick=${() => onUse(one.sql)}>To the editor</button>
      </div>`,
    )}
  </details>`;

/**
 * One result. onUse(text): the text goes to the editor.
 * @param {{result: any, onUse: (text: string) => void}} props
 */
export const Result = ({ result, onUse }) => {
  const { id, text, running, told, error, isQuery, isAnswer } = result;
  const tools = html`<button type="button" class="small" onClick=${() => onUse(text)}>To the editor</button>`;
  const state = running ? "running" : error ? "refused" : "done";
  const title = `${id}: ${state === "done" && isQuery ? "registered" : state === "done" && isAnswer ? "answered" : state}`;
  return html`<${Card} title=${title} level=${3} tools=${tools} class=${`result ${state}`}>
    <${Sql} text=${text.length > 2_000 ? `${text.slice(0, 2_000)} …` : text} inline />
    <${ErrorBox} error=${error} />
    ${told && (isAnswer ? html`<${Answered} told=${told} />` : isQuery || "handle" in told ? html`<${Registered} told=${told} />` : told.plan ? html`<${ExplainTree} plan=${told.plan} /><${Proposals} proposals=${told.proposals} onUse=${onUse} />` : told.columns ? html`<${ResultTable} columns=${told.columns} rows=${told.rows} label="Rows of the result" />` : html`<${Done} told=${told} />`)}
  <//>`;
};
