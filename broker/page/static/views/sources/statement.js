// The statement of a new source, from what is in the form.

export const TYPES = ["BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL(18, 2)", "STRING", "DATE", "TIMESTAMP"];

/** A string as SQL writes it. @param {string} text */
export const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

/** A name as SQL writes it: what is not plain goes in quotes. @param {string} text */
export const nameSql = (text) => (/^[a-z_][a-z0-9_]*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`);

/** `5000` -> `5 seconds`; "" for 0. @param {number} ms */
export const span = (ms) => {
  if (!ms) return "";
  const [size, word] = [
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1_000, "second"],
    [1, "millisecond"],
  ].find(([length]) => ms % Number(length) === 0);
  const many = ms / Number(size);
  return `${many} ${word}${many === 1 ? "" : "s"}`;
};

/**
 * What the form begins with. found: of `POST /sources/infer`.
 * @param {any} found
 */
export const formOf = (found) => ({
  name: found.name,
  given: { name: found.name, sql: found.name_sql },
  topic: found.topic,
  kind: found.kind,
  key: found.key,
  columns: found.columns.map((one) => ({ ...one, kept: true })),
  timestamp: found.timestamp?.column ?? "",
  lateness: span(found.timestamp?.lateness_ms ?? 0),
  retain: "",
  formatOptions: found.format_options,
});

/** @param {ReturnType<typeof formOf>} form */
export const statementOf = (form) => {
  const written = new Map(form.columns.map((one) => [one.name, one.name_sql]));
  const kept = form.columns.filter((one) => one.kept || form.key.includes(one.name));
  const needed = (one) => !one.nullable || one.name === form.timestamp || form.key.includes(one.name);
  const lines = kept.map(
    (one) => `    ${one.name_sql} ${one.type}${needed(one) ? " NOT NULL" : ""}${one.path_sql ? ` PATH ${one.path_sql}` : ""}`,
  );
  if (form.key.length) lines.push(`    PRIMARY KEY (${form.key.map((one) => written.get(one)).join(", ")})`);
  const options = [`topic = ${quoted(form.topic)}`, ...form.formatOptions];
  if (form.timestamp) options.push(`timestamp = ${quoted(form.timestamp)}`);
  if (form.timestamp && form.lateness.trim()) options.push(`lateness = ${quoted(form.lateness.trim())}`);
  if (form.retain.trim()) options.push(`retain = ${quoted(form.retain.trim())}`);
  return `CREATE ${form.kind.toUpperCase()} ${form.name === form.given.name ? form.given.sql : nameSql(form.name)} (\n${lines.join(",\n")}\n) WITH (${options.join(", ")})`;
};
