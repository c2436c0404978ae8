// Texts in SQL: their tokens, statements and places, and how a text is shown that is not edited.
import { html, useEffect } from "../vendor/core.js";
import { loadLanguage, words } from "./language.js";

const TOKEN =
  /(?<space>\s+)|(?<comment>--[^\n]*)|(?<block>\/\*)|(?<string>'(?:[^']|'')*'?)|(?<quoted>"(?:[^"]|"")*"?)|(?<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?<word>[\p{L}_][\p{L}\p{N}_$]*)|(?<parameter>\?|:[A-Za-z_]\w*|\$\d+)|(?<operator>\|\||::|<=|>=|<>|!=|==|->|[^\s])/uy;

const blockEnd = (text, from) => {
  const edge = /\/\*|\*\//g;
  edge.lastIndex = from + 2;
  let depth = 1;
  for (let found = edge.exec(text); found; found = edge.exec(text)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return edge.lastIndex;
  }
  return text.length;
};

/**
 * All of a text, cut into tokens; whatever is no token of SQL is an operator of one character.
 * kind: space, comment, string, quoted, number, parameter, operator, or of words what they are: keyword, type, function, name.
 * @param {string} text
 * @returns {{kind: string, from: number, to: number, text: string}[]} from, to: places in UTF-16 units
 */
export const tokens = (text) => {
  const found = [];
  const known = words.value;
  let from = 0;
  while (from < text.length) {
    TOKEN.lastIndex = from;
    const groups = TOKEN.exec(text)?.groups ?? { operator: text[from] };
    let kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    let to = from + groups[kind].length;
    if (kind === "block") [kind, to] = ["comment", blockEnd(text, from)];
    const token = { kind, from, to, text: text.slice(from, to) };
    if (kind === "word") token.kind = kindOf(token, text, known);
    found.push(token);
    from = to;
  }
  return found;
};

const kindOf = ({ text: word, to }, text, known) => {
  const kind = known.get(word.toUpperCase()) ?? "name";
  if (text[to] === "." || text[to] === "(")
    return kind === "name" && text[to] === "(" ? "function" : kind === "type" && text[to] === "." ? "name" : kind;
  return kind === "function" ? "name" : kind; // a function's name alone may be a column's
};

/**
 * The statements of a text, divided by semicolons. from, to: of each without the space and the comments around it, the semicolon left out.
 * until: where the next one begins.
 * @param {string} text
 * @returns {{from: number, to: number, until: number, text: string}[]}
 */
export const statements = (text) => {
  const found = [];
  let from = -1;
  let to = 0;
  const end = (until) => {
    if (from >= 0) found.push({ from, to, until, text: text.slice(from, to) });
    from = -1;
  };
  for (const token of tokens(text)) {
    if (token.text === ";") end(token.to);
    else if (token.kind !== "space" && token.kind !== "comment") {
      if (from < 0) from = token.from;
      to = token.to;
    }
  }
  end(text.length);
  return found;
};

/** The statement at a place, else the last one before it, else the first; null where there is none. @param {string} text @param {number} place */
export const statementAt = (text, place) => {
  const all = statements(text);
  return all.find((one) => place >= one.from && place <= one.to) ?? all.findLast((one) => one.from <= place) ?? all[0] ?? null;
};

/**
 * Where the broker points to, in UTF-16 units: its lines count from 1 and end with a line feed, its columns count characters (code points) from 1.
 * @param {string} text @param {number} line @param {number} column
 */
export const placeOf = (text, line, column) => {
  let from = 0;
  for (let left = line; left > 1; left--) {
    const end = text.indexOf("\n", from);
    if (end < 0) return text.length;
    from = end + 1;
  }
  for (let left = column; left > 1 && from < text.length && text[from] !== "\n"; left--) from += text.codePointAt(from) > 0xffff ? 2 : 1;
  return from;
};

/** Whether a text orders the rows of its answer, which changes of the answer do not tell. @param {string} text */
export const isOrdered = (text) => {
  const read = tokens(text).filter(({ kind }) => kind !== "space" && kind !== "comment");
  return read.some((one, place) => one.text.toUpperCase() === "ORDER" && read[place + 1]?.text.toUpperCase() === "BY");
};

/** @param {any} value of a parameter */
const literal = (value) => {
  if (value === null) return "NULL";
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  return typeof value === "boolean" ? String(value).toUpperCase() : String(value);
};

/**
 * `[{kind, text, of?}]`; of: the placeholder in whose place a parameter stands.
 * @param {string} text @param {any[]|Record<string, any>|null} [parameters]
 */
const filledTokens = (text, parameters) => {
  let next = 0;
  return tokens(text).map(({ kind, text: part }) => {
    if (kind !== "parameter" || !parameters) return { kind, text: part };
    const place = part === "?" ? next++ : part[0] === "$" ? Number(part.slice(1)) - 1 : part.slice(1);
    const value = Object.hasOwn(parameters, place) ? parameters[place] : undefined;
    return value === undefined ? { kind, text: part } : { kind, text: literal(value), of: part };
  });
};

/** A text as one writes it, its parameters filled in. @param {string} text @param {any[]|Record<string, any>|null} [parameters] */
export const filled = (text, parameters) =>
  filledTokens(text, parameters)
    .map((one) => one.text)
    .join("");

/**
 * A text in SQL that is only shown; spaces and line breaks stay.
 * @param {{text: string, parameters?: any[]|Record<string, any>|null, inline?: boolean, label?: string}} props inline: within a line, its
 * spaces folded
 */
export const Sql = ({ text, parameters = null, inline = false, label }) => {
  useEffect(() => {
    loadLanguage().catch(() => {}); // without it the text is shown in one colour
  }, []);
  const shown = inline ? text.replace(/\s+/g, " ").trim() : text;
  const parts = filledTokens(shown, parameters).map(({ kind, text: part, of }, place) =>
    ["space", "name", "operator"].includes(kind)
      ? part
      : html`<span key=${place} class=${`sql-${kind}`} title=${of ? `the parameter ${of}` : undefined}>${part}</span>`,
  );
  return inline ? html`<code class="sql">${parts}</code>` : html`<pre class="sql" aria-label=${label}><code>${parts}</code></pre>`;
};
