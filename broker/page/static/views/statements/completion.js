// What may stand at the caret: sources, columns of those in FROM, functions, words, windows, options and their values.
import { language } from "../../lib/language.js";
import { statementAt, tokens } from "../../lib/sql.js";
import { sources } from "./model.js";

const PLAIN = /^[a-z_][a-z0-9_]*$/;
const FROM_ENDS = new Set([
  "WHERE",
  "GROUP",
  "HAVING",
  "ORDER",
  "LIMIT",
  "UNION",
  "EXCEPT",
  "INTERSECT",
  "EMIT",
  "WITH",
  "BEGIN",
  "SELECT",
]);

/** A name as a text has it. @param {string} name */
export const named = (name) =>
  PLAIN.test(name) && !language.value?.reserved.includes(name.toUpperCase()) ? name : `"${name.replaceAll('"', '""')}"`;

const upper = (token) => token?.text.toUpperCase() ?? "";
const plain = (token) => (token.kind === "quoted" ? token.text.slice(1, -1).replaceAll('""', '"') : token.text.toLowerCase());
const isName = (token) => token && (token.kind === "quoted" || token.kind === "name" || token.kind === "function" || token.kind === "type");

/**
 * The sources that a statement reads, by the name that their columns may have before them.
 * @param {{kind: string, text: string}[]} words tokens without space and comments
 * @returns {Map<string, any>}
 */
const read = (words) => {
  const known = new Map((sources.value ?? []).map((one) => [one.name, one]));
  const found = new Map();
  let inFrom = false;
  words.forEach((token, place) => {
    const word = upper(token);
    if (token.kind === "keyword" && (word === "FROM" || word === "JOIN")) inFrom = true;
    else if (token.kind === "keyword" && FROM_ENDS.has(word)) inFrom = false;
    const before = upper(words[place - 1]);
    if (!inFrom || !isName(token) || !["FROM", "JOIN", ",", "("].includes(before)) return;
    const source = known.get(plain(token));
    if (!source) return;
    let next = place + 1;
    if (words[next]?.text === "[") while (next < words.length && words[next - 1]?.text !== "]") next += 1;
    if (upper(words[next]) === "AS") next += 1;
    found.set(isName(words[next]) ? plain(words[next]) : source.name, source);
  });
  return found;
};

const openBracket = (words) => {
  const open = [];
  words.forEach((token, place) => {
    if (token.text === "(" || token.text === "[") open.push(place);
    else if (token.text === ")" || token.text === "]") open.pop();
  });
  return open.at(-1) ?? -1;
};

/** The place of options that an open bracket belongs to, or null. */
const optionsAt = (words, bracket) => {
  const before = upper(words[bracket - 1]);
  if (before === "SETTINGS" || before === "SET") return "summary";
  if (before !== "WITH") return null;
  if (upper(words[0]) === "CREATE" && ["STREAM", "TABLE"].includes(upper(words[1])) && !words.some((token) => upper(token) === "SELECT"))
    return "stream";
  return words.some((token) => upper(token) === "EMIT") ? "emit" : "query";
};

const columnsOf = (source, boost) =>
  source.columns.map(({ name, type }) => ({
    label: name,
    apply: named(name),
    type: "property",
    detail: type,
    info: `of ${source.name}`,
    boost,
  }));

const sourceItems = (boost) =>
  (sources.value ?? []).map((one) => ({
    label: one.name,
    apply: named(one.name),
    type: "class",
    detail: one.kind,
    info: one.columns.map((column) => `${column.name} ${column.type}`).join(", "),
    boost,
  }));

const functionItems = (kinds, snippet) =>
  language.value.functions
    .filter((one) => kinds.includes(one.kind))
    .map((one) => snippet(`${one.name}(\${})`, { label: one.name, type: "function", detail: one.signature, info: one.about, boost: -1 }));

const typeItems = (boost) => language.value.types.map((one) => ({ label: one.name, type: "type", info: one.about, boost }));

const optionItems = (place, snippet) =>
  language.value.options
    .filter((one) => one.place === place)
    .map((one) =>
      snippet(`${one.name} = \${${one.example}}`, {
        label: one.name,
        type: "property",
        detail: one.choices.join(", ") || one.form,
        info: one.about,
        boost: 5,
      }),
    );

const valueItems = (place, name) => {
  const option = language.value.options.find((one) => one.place === place && one.name === name);
  return (option?.choices ?? []).map((choice) => ({
    label: option.form === "flag" ? choice : `'${choice}'`,
    type: "constant",
    info: option.about,
    boost: 5,
  }));
};

/**
 * Completions at a place of a text.
 * @param {string} text @param {number} place @param {(template: string, item: object) => object} snippet makes an item of a template
 * @returns {{from: number, options: object[]}|null}
 */
export const completions = (text, place, snippet) => {
  if (!language.value) return null;
  const statement = statementAt(text, place);
  const begin = statement && statement.from <= place && place <= statement.until ? statement.from : place;
  const before = tokens(text.slice(begin, place));
  const last = before.at(-1);
  if (last?.kind === "comment" || last?.kind === "number" || last?.kind === "quoted") return null;
  const words = before.filter((token) => token.kind !== "space" && token.kind !== "comment");
  const typed = last && ["name", "keyword", "function", "type", "string"].includes(last.kind) ? words.pop() : null;
  const from = typed ? begin + typed.from : place;
  const bracket = openBracket(words);
  const options = bracket >= 0 ? optionsAt(words, bracket) : null;
  const previous = words.at(-1);
  if (options && previous?.text === "=") return { from, options: valueItems(options, plain(words.at(-2))) };
  if (typed?.kind === "string") return null;
  if (options && (previous?.text === "(" || previous?.text === ",")) return { from, options: optionItems(options, snippet) };
  if (bracket >= 0 && words[bracket].text === "[" && bracket === words.length - 1)
    return {
      from: begin + words[bracket].from,
      options: language.value.windows.map((one) => ({ label: one.form, type: "text", detail: one.about, boost: 5 })),
    };

  const whole = tokens(statement?.text ?? "").filter((token) => token.kind !== "space" && token.kind !== "comment");
  const reads = read(whole);
  if (previous?.text === "." && isName(words.at(-2))) {
    const source = reads.get(plain(words.at(-2)));
    return source ? { from, options: columnsOf(source, 5) } : null;
  }
  const word = upper(previous);
  if (previous?.text === "::" || (word === "AS" && words.some((token) => upper(token) === "CAST") && bracket >= 0))
    return { from, options: typeItems(5) };
  if (["FROM", "JOIN", "DESCRIBE"].includes(word) || (word === "ON" && upper(words[1]) === "SUMMARY"))
    return { from, options: [...sourceItems(5), ...functionItems(["window"], snippet)] };
  if (!words.length)
    return {
      from,
      options: language.value.statements.map((one) => ({ label: one.words, detail: one.form, info: one.about, type: "keyword", boost: 5 })),
    };
  return {
    from,
    options: [
      ...[...reads.values()].flatMap((source) => columnsOf(source, 4)),
      ...[...reads].map(([name, source]) => ({ label: name, apply: named(name), type: "class", detail: source.kind, boost: 2 })),
      ...functionItems(["scalar", "aggregate", "window", "user"], snippet),
      ...language.value.keywords.map((label) => ({ label, type: "keyword" })),
      ...typeItems(-2),
    ],
  };
};
