// The text of a query, coloured, with its parameters in the places of their placeholders.
import { html } from "../../vendor/core.js";

const TOKEN =
  /(--[^\n]*)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\?|\$\d+|:[A-Za-z_]\w*)|(\b\d[\d.]*(?:[eE][+-]?\d+)?\b)|([A-Za-z_]\w*)|(::|\s+|.)/gsu;
const KINDS = ["comment", "string", "name", "parameter", "number", "word", "rest"];
const WORDS = new Set(
  "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET AS AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END JOIN LEFT RIGHT FULL OUTER INNER CROSS ON USING UNION ALL EXCEPT INTERSECT DISTINCT RANGE ROWS SLIDE UNBOUNDED PRECEDING PARTITION OVER WITH EMIT CHANGES ISTREAM DSTREAM RSTREAM SAMPLE EXISTS ASC DESC TRUE FALSE CAST TUMBLE HOP SESSION ASOF SEMI ANTI PREFERENCE SECONDS SECOND MINUTES MINUTE HOURS HOUR DAYS DAY MILLISECONDS DOWN TO FILTER NULLS FIRST LAST NOW TABLE LATERAL".split(
    " ",
  ),
);

/** @param {any} value of a parameter */
const literal = (value) =>
  value === null
    ? "NULL"
    : typeof value === "string"
      ? `'${value.replaceAll("'", "''")}'`
      : typeof value === "boolean"
        ? String(value).toUpperCase()
        : String(value);

/** `[{kind, text, from?}]`; from: the placeholder in whose place a parameter stands. @param {string} sql @param {any[]|Record<string, any>|null|undefined} parameters */
export const tokens = (sql, parameters) => {
  let next = 0;
  const found = [];
  for (const match of sql.matchAll(TOKEN)) {
    const kind = KINDS[match.slice(1).findIndex((part) => part !== undefined)];
    const [text] = match;
    if (kind === "parameter" && parameters) {
      const value = text === "?" ? parameters[next++] : text[0] === "$" ? parameters[Number(text.slice(1)) - 1] : parameters[text.slice(1)];
      found.push(value === undefined ? { kind: "rest", text } : { kind, text: literal(value), from: text });
    } else if (kind === "word") found.push({ kind: WORDS.has(text.toUpperCase()) ? "keyword" : "rest", text });
    else found.push({ kind: kind === "parameter" ? "rest" : kind, text });
  }
  return found;
};

/** The text as one writes it, parameters filled in. */
export const filled = (sql, parameters) =>
  tokens(sql, parameters)
    .map((one) => one.text)
    .join("");

/** Whether the rows of the answer are in an order that the text asks for. @param {string} sql */
export const isOrdered = (sql) => {
  const words = tokens(sql, null)
    .filter((one) => one.kind === "keyword")
    .map((one) => one.text.toUpperCase());
  return words.some((word, place) => word === "ORDER" && words[place + 1] === "BY");
};

export const Sql = ({ sql, parameters = null }) =>
  html`<pre class="sql"><code>${tokens(sql, parameters).map(({ kind, text, from }, place) =>
    kind === "rest" ? text : html`<span key=${place} class=${kind} title=${from ? `the parameter ${from}` : undefined}>${text}</span>`,
  )}</code></pre>`;
