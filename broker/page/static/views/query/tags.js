// What of an answer is not exact, in sentences.

import { count, share, valued } from "../../lib/units.js";
import { html } from "../../vendor/core.js";

const ORIGINS = {
  declared: "The text asks for it",
  static: "It is so since the query was registered",
  dynamic: "It was chosen while the query ran",
};
const amountOf = (amount, unit) =>
  unit === "percent"
    ? `${Number(amount.toPrecision(3))} %`
    : ["ms", "bytes"].includes(unit)
      ? valued(amount, unit)
      : `${count(amount)} ${unit}`;

const WORDS = {
  sample: (tag, given, asked) =>
    `Of ${tag.where}, ${given} of the rows are read${asked ? `, ${asked} would be exact` : ""}; which ones is decided by their hash.`,
  window: (tag, given, asked) => `The window over ${tag.where} is ${given}${asked ? ` instead of ${asked}` : ""}.`,
  synopsis: (tag, given, asked) => `A compressed state of ${given} answers for ${tag.where}${asked ? `; exactness takes ${asked}` : ""}.`,
  shed: (tag, given) =>
    `Rows of ${tag.where} were dropped under load: ${given} are missing${tag.rows_missing === undefined ? "" : `, ${count(tag.rows_missing)} of ${count(tag.rows_due)}`}.`,
  constraint: (tag, given) => `Rows of ${tag.where} broke a promise of their source: ${given}.`,
  preference: (tag) => `There was no time yet for all rows of ${tag.where} that are due.`,
};

/** @param {any} tag as the API has it @returns {string} */
export const sentence = (tag) => {
  const given = amountOf(tag.amount, tag.unit);
  const asked = tag.asked === undefined ? null : amountOf(tag.asked, tag.unit);
  const parts = [WORDS[tag.kind]?.(tag, given, asked) ?? `${tag.kind} of ${tag.where}: ${given}.`];
  const { fp, fn, error, fn_changes, rank_error } = tag.expected ?? {};
  const expected = [];
  if (fn !== undefined) expected.push(`${share(fn)} of the rows that are due are missing`);
  if (fp !== undefined && fp > 0) expected.push(`${share(fp)} of the rows are wrong`);
  if (error !== undefined) expected.push(`aggregates are within ${share(error)}`);
  if (fn_changes !== undefined) expected.push(`${share(fn_changes)} of the rows due to come do not`);
  if (rank_error !== undefined) expected.push(`quantiles are within ${share(rank_error)} of the ranks`);
  if (expected.length) parts.push(`Expected: ${expected.join(", ")}.`);
  if (tag.contiguous) parts.push("Rows next to each other are missing, so the rest is no fair sample.");
  if (tag.unscaled?.length) parts.push(`${tag.unscaled.join(", ")} are of the rows that were read alone.`);
  if (tag.entries_left !== undefined) parts.push(`${count(tag.entries_left)} entries are left to visit.`);
  parts.push(`${ORIGINS[tag.origin] ?? tag.origin}${tag.since ? `, from position ${tag.since} on` : ""}.`);
  return parts.join(" ");
};

export const Tags = ({ tags }) =>
  tags.length
    ? html`<ul class="query-tags" aria-label="What is not exact">${tags.map((tag) => html`<li key=${`${tag.kind} ${tag.where}`}><span class="badge warn">${tag.kind}</span> ${sentence(tag)}</li>`)}</ul>`
    : html`<p><span class="badge good">exact</span> <span class="dim">Nothing of the answer is approximated.</span></p>`;
