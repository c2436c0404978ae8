// What an answer, a query or a plan says of itself where it is not whole.

import { html } from "../vendor/core.js";
import { count } from "./units.js";

/** How far a source is, in a sentence. @param {{source: string, read: number, of: number|null, waiting: number, lost: boolean}} one */
export const behindWords = ({ source, read, of, waiting, lost }) => {
  if (of === null) return `${source} is catching up: Kafka has not told yet what its topic holds.`;
  if (lost) return `${source} reads no more: ${count(read)} of ${count(of)} records were read.`;
  if (read < of) return `${source} is catching up: ${count(read)} of ${count(of)} records of its topic are read.`;
  return `${source} is catching up: all ${count(of)} records are read, ${waiting === 1 ? "1 row waits" : `${count(waiting)} rows wait`} for NOW.`;
};

/** Sources that have not yet what their topics held, and rows that are missing since their condition failed. @param {{of: any}} props */
export const Remarks = ({ of }) => {
  const behind = of.catching_up ?? [];
  const nulls = of.errors ?? 0;
  const failed = of.condition_errors ?? of.predicate_errors ?? 0;
  return html`
    ${behind.map((one) => html`<p key=${one.source} class="warn" role="status">Incomplete: ${behindWords(one)}</p>`)}
    ${failed > 0 && html`<p class="warn">${failed === 1 ? "1 row is" : `${count(failed)} rows are`} not in the answer: their condition could not be computed.</p>`}
    ${nulls > 0 && html`<p class="warn">${nulls === 1 ? "1 value" : `${count(nulls)} values`} could not be computed: a selected one is NULL.</p>`}`;
};
