// Values of answers as text, by the type of their column.
import { html } from "../../vendor/core.js";

/** @param {string} type */
export const isNumber = (type) => /^(INTEGER|BIGINT|DOUBLE|DECIMAL)/.test(type);
/** @param {string} type */
export const isTime = (type) => type === "TIMESTAMP" || type === "DATE";
/** @param {string} type */
export const isCategory = (type) => type === "STRING" || type === "BOOLEAN";

/** A number of an answer, whose decimals and infinities come as text; NaN where it is none. @param {any} value */
export const numberOf = (value) =>
  typeof value === "number" ? value : typeof value === "string" && value !== "" ? Number(value) : Number.NaN;

const nested = (value) =>
  value === null
    ? "NULL"
    : Array.isArray(value)
      ? `[${value.map(nested).join(", ")}]`
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);

/** @param {any} value @param {string} type */
export const textOf = (value, type) => {
  if (value === null || value === undefined) return "NULL";
  if (type === "TIMESTAMP" && typeof value === "string") return value.replace("T", " ").replace(/(\.000)?Z$/, "");
  return nested(value);
};

/** A value in a cell; a NULL looks like none of the values that read so. */
export const Value = ({ value, type }) => {
  if (value === null || value === undefined) return html`<span class="query-null">NULL</span>`;
  const text = textOf(value, type);
  if (type === "TIMESTAMP")
    return html`<time datetime=${value} title=${`${new Date(value).toLocaleString(undefined, { timeZoneName: "short" })}`}>${text}</time>`;
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && type !== "DOUBLE")
    return html`<span title="This browser has 53 bits for a number: the last digits may differ. CSV and Arrow have all.">≈ ${text}</span>`;
  if (value === "") return html`<span class="query-null" title="a text without characters">''</span>`;
  return html`<span title=${text.length > 40 ? text : undefined}>${text}</span>`;
};

/** Compares two values of a column: NULL last, numbers by size, the rest as text. @param {string} type */
export const comparator = (type) => (one, other) => {
  if (one === null || other === null) return (one === null ? 1 : 0) - (other === null ? 1 : 0);
  if (isNumber(type)) return numberOf(one) - numberOf(other) || 0;
  if (Array.isArray(one)) return nested(one) < nested(other) ? -1 : 1;
  return one < other ? -1 : one > other ? 1 : 0;
};
