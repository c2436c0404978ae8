// The text of a query with its parameters in the places of their placeholders.

import { loadLanguage } from "../../lib/language.js";
import { tokens } from "../../lib/sql.js";
import { html, useEffect } from "../../vendor/core.js";

/** @param {any} value of a parameter */
const literal = (value) => {
  if (value === null) return "NULL";
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  return typeof value === "boolean" ? String(value).toUpperCase() : String(value);
};

/** `[{kind, text, from?}]`; from: the placeholder in whose place a parameter stands. @param {string} sql @param {any[]|Record<string, any>|null|undefined} parameters */
const filledTokens = (sql, parameters) => {
  let next = 0;
  return tokens(sql).map(({ kind, text }) => {
    if (kind !== "parameter" || !parameters) return { kind, text };
    const place = text === "?" ? next++ : text[0] === "$" ? Number(text.slice(1)) - 1 : text.slice(1);
    const value = parameters[place];
    return value === undefined ? { kind, text } : { kind, text: literal(value), from: text };
  });
};

/** The text as one writes it, parameters filled in. */
export const filled = (sql, parameters) =>
  filledTokens(sql, parameters)
    .map((one) => one.text)
    .join("");

/** Whether the text has an order of rows in it, which changes of the answer would not tell. @param {string} sql */
export const isOrdered = (sql) => {
  const read = tokens(sql).filter(({ kind }) => kind !== "space" && kind !== "comment");
  return read.some(({ text }, place) => text.toUpperCase() === "ORDER" && read[place + 1]?.text.toUpperCase() === "BY");
};

export const Sql = ({ sql, parameters = null }) => {
  useEffect(() => {
    loadLanguage().catch(() => {}); // without it the text is shown in one colour
  }, []);
  return html`<pre class="sql"><code>${filledTokens(sql, parameters).map(({ kind, text, from }, place) =>
    ["space", "name", "operator"].includes(kind)
      ? text
      : html`<span key=${place} class=${`sql-${kind}`} title=${from ? `the parameter ${from}` : undefined}>${text}</span>`,
  )}</code></pre>`;
};
