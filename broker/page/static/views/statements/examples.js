// Statements to begin with, made of the sources that are there.
import { named } from "./completion.js";

const NUMBERS = /^(INTEGER|BIGINT|DOUBLE|DECIMAL)/;
const columnOf = (source, type) => source.columns.find((one) => type.test(one.type) && one.name !== source.timestamp);

const CREATE = {
  title: "Create a stream",
  about: "of the JSON records of a Kafka topic",
  sql: "CREATE STREAM orders (id BIGINT NOT NULL, customer STRING, amount DOUBLE, ordered TIMESTAMP NOT NULL)\nWITH (timestamp = 'ordered', lateness = '5 seconds')",
};
const LISTS = [
  { title: "List the sources", about: "streams, tables and views", sql: "SHOW SOURCES" },
  { title: "List the functions", about: "those of SQL and this broker's own", sql: "SHOW FUNCTIONS" },
];

const ofStream = (stream) => {
  const name = named(stream.name);
  const number = columnOf(stream, NUMBERS);
  const text = columnOf(stream, /^STRING/);
  const found = [{ title: `The last rows of ${stream.name}`, about: "a window of rows", sql: `SELECT * FROM ${name} [ROWS 20]` }];
  if (number)
    found.push({
      title: `Rows of ${stream.name} above a number`,
      about: "a template: the number is a parameter",
      sql: `SELECT * FROM ${name} [RANGE 10 MINUTES]\nWHERE ${named(number.name)} > :least`,
    });
  if (text) {
    const average = number ? `, AVG(${named(number.name)}) AS average` : "";
    found.push(
      {
        title: `Counts by ${text.name}`,
        about: "of the last hour, always current",
        sql: `SELECT ${named(text.name)}, COUNT(*) AS n${average}\nFROM ${name} [RANGE 1 HOUR]\nGROUP BY ${named(text.name)}\nORDER BY n DESC LIMIT 10`,
      },
      {
        title: `Counts by ${text.name} and minute`,
        about: "its changes go to a topic",
        sql: `SELECT window_start, ${named(text.name)}, COUNT(*) AS n\nFROM TUMBLE(${name}, INTERVAL '1' MINUTE)\nGROUP BY window_start, ${named(text.name)}\nEMIT CHANGES`,
      },
    );
  }
  return found;
};

const joinOf = (stream, other) => {
  const [key] = other.kind === "table" ? (other.key ?? []) : other.columns.map((one) => one.name);
  const type = other.columns.find((one) => one.name === key)?.type;
  const left =
    stream.columns.find((one) => one.name === key) ?? stream.columns.find((one) => one.type === type && one.name !== stream.timestamp);
  if (!key || !left || (other.kind !== "table" && left.name !== key)) return null;
  const window = other.kind === "table" ? "" : " [RANGE 10 MINUTES]";
  return {
    title: `${stream.name} with ${other.name}`,
    about: other.kind === "table" ? "each row with the table's row of its key" : "pairs within ten minutes",
    sql: `SELECT *\nFROM ${named(stream.name)} [RANGE 10 MINUTES] a\nJOIN ${named(other.name)}${window} b ON a.${named(left.name)} = b.${named(key)}`,
  };
};

/**
 * At most eight statements with titles.
 * @param {any[]} sources with columns
 * @returns {{title: string, about: string, sql: string}[]}
 */
export const examples = (sources) => {
  const streams = sources.filter((one) => one.kind === "stream");
  if (!streams.length) return [CREATE, ...LISTS];
  const [first] = streams;
  const joins = sources
    .filter((one) => one !== first && one.kind !== "view")
    .map((one) => joinOf(first, one))
    .filter((one) => one !== null);
  return [
    ...ofStream(first),
    ...joins.slice(0, 1),
    { title: `Describe ${first.name}`, about: "its columns", sql: `DESCRIBE ${named(first.name)}` },
    ...LISTS,
  ].slice(0, 8);
};
