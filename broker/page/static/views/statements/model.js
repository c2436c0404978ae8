// What the view of statements knows while the page is open: the text, what it means, what came of it.

import { del, get, post } from "../../lib/api.js";
import { placeOf, statementAt, tokens } from "../../lib/sql.js";
import { batch, computed, signal } from "../../vendor/core.js";

const HISTORY_MAX = 50;
const RESULTS_MAX = 30;
const ANSWER_ROWS_MAX = 1_000;

/** The text in the editor. It stays while the page is open, in this tab alone. */
export const draft = signal("");
/** Where the caret stands, in UTF-16 units. */
export const caret = signal(0);
/** The statement at the caret: `{from, to, until, text}`, or null. */
export const current = computed(() => statementAt(draft.value, caret.value));
/** What the last check found: `{text, told, error}`; null before the first. text: of the statement that was checked. */
export const checked = signal(null);
/** Values of the placeholders of the current statement, as they were typed, by name or place. */
export const values = signal({});
/** What came of statements, the newest first: `{id, text, running, told, error, registered}`. */
export const results = signal([]);
/** Streams, tables and views with their columns; null while not known. */
export const sources = signal(null);

/** Ask for the sources again. */
export const loadSources = async () => {
  const found = await get("sources");
  sources.value = found.sources.map(({ name, kind, columns, key, timestamp }) => ({ name, kind, columns, key, timestamp }));
};

/** The placeholders of a text, in order, each once: "?" by number, `:name`, `$1`. @param {string} text */
export const placeholders = (text) => {
  let asked = 0;
  const found = tokens(text)
    .filter((token) => token.kind === "parameter")
    .map((token) => (token.text === "?" ? String(++asked) : token.text.slice(1)));
  return [...new Set(found)];
};

const meant = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a string without quotes
  }
};

/**
 * A text as the API takes it: with parameters where it has placeholders.
 * @param {string} text
 * @returns {{sql: string}|{template: string, parameters: any}|null} null where a value is missing
 */
export const wording = (text) => {
  const names = placeholders(text);
  if (!names.length) return { sql: text };
  if (names.some((name) => !(values.value[name] ?? "").trim())) return null;
  const given = names.map((name) => [name, meant(values.value[name])]);
  return {
    template: text,
    parameters: names.every((name) => /^\d+$/.test(name)) ? given.map(([, value]) => value) : Object.fromEntries(given),
  };
};

/** What the first word of a statement does: "query", "show" (nothing changes), "change", or "end" (something is lost). @param {string} text */
export const kindOf = (text) => {
  const [first] = tokens(text).filter((token) => token.kind !== "space" && token.kind !== "comment");
  const word = (first?.text ?? "").toUpperCase();
  if (["SELECT", "WITH", "ISTREAM", "DSTREAM", "RSTREAM", "("].includes(word)) return "query";
  if (["DROP", "TERMINATE"].includes(word)) return "end";
  return ["CREATE", "ALTER", "INSERT", "PAUSE", "RESUME"].includes(word) ? "change" : "show";
};

let running = null;

/** Have the broker say what the statement at the caret means; what is asked later wins. */
export const check = async () => {
  running?.abort();
  const statement = current.value;
  const asked = statement && wording(statement.text);
  if (!asked) {
    checked.value = null;
    return;
  }
  const abort = new AbortController();
  running = abort;
  try {
    const told = await post("statements/check", asked, { signal: abort.signal });
    if (!abort.signal.aborted) checked.value = { text: statement.text, told: told.error ? null : told, error: told.error };
  } catch (error) {
    if (!abort.signal.aborted) checked.value = { text: statement.text, told: null, error };
  }
};

/**
 * Where in the draft the error of the current statement stands, and what it offers instead.
 * @returns {{from: number, to: number, offers: string[]}|null} null where it has no place, or the text has changed since
 */
export const errorPlace = computed(() => {
  const found = checked.value;
  const statement = current.value;
  if (!found?.error?.line || !statement || statement.text !== found.text) return null;
  const { error, text } = found;
  const all = tokens(text);
  const place = placeOf(text, error.line, error.column);
  const first = all.findIndex((token) => place >= token.from && place < token.to);
  const name = /named '(.*)'/.exec(error.message)?.[1];
  let token = all[first];
  if (name && token && unquoted(token) !== name.toLowerCase()) {
    // a name behind its source's: what is wrong is the part behind the dot
    token = all.slice(first, first + 6).find((one) => unquoted(one) === name.toLowerCase()) ?? token;
  }
  const hint = /did you mean (.+?)\?/.exec(error.hint ?? "")?.[1];
  return {
    from: statement.from + (token?.from ?? Math.max(0, text.length - 1)),
    to: statement.from + (token?.to ?? text.length),
    offers: token && hint ? hint.split(/ or |, /).map((one) => one.trim()) : [],
  };
});

/** The error of the current statement with its place in the whole draft. */
export const errorInDraft = computed(() => {
  const { error } = checked.value ?? {};
  if (!error?.line || !current.value) return error ?? null;
  const before = draft.value.slice(0, current.value.from);
  const lines = before.split("\n");
  return { ...error, line: error.line + lines.length - 1, column: error.column + (error.line === 1 ? [...lines.at(-1)].length : 0) };
});

const unquoted = ({ kind, text }) => (kind === "quoted" ? text.slice(1, -1).replaceAll('""', '"') : text).toLowerCase();

// --- what came of statements ------------------------------------------------------------------------------

let results_made = 0;

const put = (id, fields) => {
  results.value = results.value.map((one) => (one.id === id ? { ...one, ...fields } : one));
};

/**
 * Carry out a statement, or register a SELECT; whatever comes of it is put among the results.
 * @param {string} text @param {{handle?: string, options?: object}} [registration] of a SELECT
 * @returns {Promise<any>} null where it was refused
 */
export const run = async (text, registration = {}) => {
  const id = ++results_made;
  remember(text);
  results.value = [{ id, text: masked(text), running: true, told: null, error: null }, ...results.value].slice(0, RESULTS_MAX);
  try {
    const isQuery = kindOf(text) === "query";
    const asked = wording(text);
    if (!asked) throw Object.assign(new Error("a parameter has no value"), { code: "parameters_refused", hint: "fill in the parameters" });
    const told = isQuery ? await post("queries", { ...asked, ...registration }) : await post("statements", asked);
    put(id, { running: false, told, isQuery });
    if (kindOf(text) !== "show") loadSources().catch(() => {});
    return told;
  } catch (error) {
    put(id, { running: false, error });
    return null;
  }
};

/** Whether a SELECT writes to a topic, so that it cannot only be asked. @param {string} text */
export const emits = (text) => tokens(text).some((token) => token.kind === "keyword" && token.text.toUpperCase() === "EMIT");

/**
 * Ask a SELECT once: it is registered, answered and dropped again, and its rows are put among the results.
 * @param {string} text
 */
export const ask = async (text) => {
  const id = ++results_made;
  remember(text);
  results.value = [{ id, text, running: true, told: null, error: null }, ...results.value].slice(0, RESULTS_MAX);
  let asked = null;
  try {
    const given = wording(text);
    if (!given) throw Object.assign(new Error("a parameter has no value"), { code: "parameters_refused", hint: "fill in the parameters" });
    asked = await post("queries", given);
    const path = `queries/${encodeURIComponent(asked.query_id)}/snapshot?limit=${ANSWER_ROWS_MAX}`;
    put(id, { running: false, told: { ...(await get(path, { handle: asked.handle })), warnings: asked.warnings }, isAnswer: true });
  } catch (error) {
    put(id, { running: false, error });
  } finally {
    if (asked) await del(`queries/${encodeURIComponent(asked.query_id)}`, { handle: asked.handle }).catch(() => {});
  }
};

/** Handles are shown once: forget those among the results. */
export const forgetShown = () => {
  results.value = results.value.map((one) => (one.told?.handle ? { ...one, told: { ...one.told, handle: null } } : one));
};

// --- the history of this tab ------------------------------------------------------------------------------

const KEY = "statements";
/** Statements that were run in this tab, the newest first, without handles. */
export const history = signal(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));

/** A text whose handles are left out. @param {string} text */
export const masked = (text) => {
  const all = tokens(text);
  const words = all.filter((token) => token.kind !== "space" && token.kind !== "comment");
  const [first, ...rest] = words;
  if (!["PAUSE", "RESUME", "TERMINATE", "ALTER", "EXPLAIN"].includes(first?.text.toUpperCase())) return text;
  const secret = rest.slice(0, 3).find((token) => token.kind === "string");
  return secret ? `${text.slice(0, secret.from)}'handle'${text.slice(secret.to)}` : text;
};

const remember = (text) => {
  const shown = masked(text);
  history.value = [shown, ...history.value.filter((one) => one !== shown)].slice(0, HISTORY_MAX);
  sessionStorage.setItem(KEY, JSON.stringify(history.value));
};

/** Forget all of it. */
export const forgetHistory = () =>
  batch(() => {
    history.value = [];
    sessionStorage.removeItem(KEY);
  });
