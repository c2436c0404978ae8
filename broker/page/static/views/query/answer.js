// The answer of a query as it is now, and as it changes.

import { count } from "../../lib/units.js";
import { Badge, Card, ErrorBox, Instant } from "../../lib/widgets.js";
import { html, useEffect, useMemo } from "../../vendor/core.js";
import { useLive } from "./live.js";
import { Plot } from "./plot.js";
import { AnswerTable } from "./table.js";
import { Tags } from "./tags.js";

const STATES = {
  loading: ["", "loading"],
  live: ["good", "followed row by row"],
  polling: ["good", "asked for every 2 s"],
  waiting: ["bad", "no connection: these are old values"],
  hidden: ["dim", "resting"],
  paused: ["dim", "paused: there is no answer"],
  pending: ["warn", "not running: there is no answer yet"],
  gone: ["bad", "dropped"],
  failed: ["bad", "ended"],
};
const OPERATORS = {
  istream: "Only what comes is told of this query: rows that retention removes stay here until the view is opened again.",
  dstream: "This query tells the rows that left: they are listed as they leave.",
  rstream: "This query tells its whole answer at each instant.",
};

/** isOrdered: the text asks for an order of its rows. onState(): the query was paused or dropped, or goes on. */
export const Answer = ({ id, handle, isOrdered, anew, onState }) => {
  const { state, error, columns, operator, rows, total, now_ms, tags, complete_from_ms, came, went, refetched } = useLive(
    id,
    handle,
    isOrdered,
    anew,
  );
  const isFailed = state === "failed";
  useEffect(() => {
    if (["live", "paused", "gone"].includes(state)) onState();
  }, [state]);
  const [tone, words] = STATES[state];
  const columnsKept = useMemo(() => columns, [JSON.stringify(columns)]);
  return html`<div class="query-now">
    <${Card} title="Answer" tools=${html`<span role="status"><${Badge} state=${tone}>${words}<//></span>`}>
      ${isFailed && html`<${ErrorBox} error=${error} />`}
      ${state === "gone" && html`<p class="error" role="alert"><strong>This query was dropped.</strong> What you see is its last answer, true for NOW <${Instant} ms=${now_ms} /> UTC; it changes no more.</p>`}
      ${state === "paused" && html`<p class="dim">A paused query has no answer. ${columns.length ? "What you see is the last one before the pause. " : ""}Resume it to go on.</p>`}
      ${refetched && html`<p class="dim">The changes could not be continued, since the text is another or too much time had passed: the answer was fetched anew.</p>`}
      ${
        columns.length > 0 &&
        html`<p class="query-facts">
            NOW <${Instant} ms=${now_ms} /> UTC
            ${state !== "polling" && html`<span class="dim"> · ${count(came)} came, ${count(went)} went while you looked</span>`}
            ${complete_from_ms !== null && html`<span class="warn"> · complete only from <${Instant} ms=${complete_from_ms} /> UTC on: older rows are gone</span>`}
          </p>
          <${Tags} tags=${tags} />
          ${OPERATORS[operator] && html`<p class="dim">${OPERATORS[operator]}</p>`}
          ${state === "polling" && !isOrdered && html`<p class="dim">The answer is large, so it is not followed: its first rows are asked for again every 2 s.</p>`}
          <${AnswerTable} columns=${columnsKept} rows=${rows} total=${total} label="Rows of the answer" newestFirst=${operator === "istream" || operator === "dstream"} />`
      }
    <//>
    ${
      columns.length > 0 && html`<${Card} title="Plot"><${Plot} columns=${columnsKept} rows=${rows} total=${total} now_ms=${now_ms} /><//>`
    }</div>`;
};
