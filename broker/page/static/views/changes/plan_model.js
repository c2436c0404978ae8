// Plans as files: what their operators read, and edits of them. Nothing here is drawn or asked for.

/** Fields that name an operator whose rows are taken. */
export const INPUTS = ["input", "left", "right", "inner"];

/** The operators that one reads: `[[field, name]]`. @param {Record<string, any>} node */
export const inputsOf = (node) => INPUTS.filter((field) => typeof node?.[field] === "string").map((field) => [field, node[field]]);

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** The operators of a plan by name, whatever somebody typed: what is no object is an operator without fields. */
export const nodesOf = (plan) =>
  isObject(plan?.nodes) ? Object.fromEntries(Object.entries(plan.nodes).map(([name, node]) => [name, isObject(node) ? node : {}])) : {};

const clone = (plan) => ({ ...structuredClone(plan), nodes: structuredClone(nodesOf(plan)) });

/** A name that no operator has yet. */
export const freeName = (plan, base) => {
  const taken = new Set(Object.keys(nodesOf(plan)));
  for (let number = 0; ; number++) {
    const name = number ? `${base}_${number + 1}` : base;
    if (!taken.has(name)) return name;
  }
};

/** What a new operator of a kind has, by its schema: required fields, empty. */
export const emptyNode = (schema, inputs) => {
  const node = { op: schema.title };
  let place = 0;
  for (const field of schema.required) {
    if (field === "op") continue;
    const kind = schema.properties[field];
    if (INPUTS.includes(field)) node[field] = inputs[Math.min(place++, inputs.length - 1)] ?? "";
    else if (kind.enum) node[field] = kind.enum[0];
    else if (kind.type === "object") node[field] = {};
    else if (kind.type === "array") node[field] = [];
    else if (kind.type === "integer") node[field] = kind.minimum ?? 0;
    else node[field] = "";
  }
  return node;
};

/** The plan with another operator above `selected`; where that was the output, the new one is. Returns `[plan, name]`. */
export const withNode = (plan, schema, selected) => {
  const found = clone(plan);
  delete found.sql;
  const names = Object.keys(found.nodes);
  const others = names.filter((name) => name !== selected);
  const inputs = [...(selected ? [selected] : []), ...others];
  const name = freeName(found, schema.title);
  const takes = schema.required.some((field) => INPUTS.includes(field));
  found.nodes[name] = emptyNode(schema, inputs);
  if (!found.output || (takes && found.output === selected)) found.output = name;
  return [found, name];
};

/** The plan without an operator: who read it reads what it read. */
export const withoutNode = (plan, name) => {
  const found = clone(plan);
  const [, below = ""] = inputsOf(found.nodes[name])[0] ?? [];
  delete found.nodes[name];
  for (const node of Object.values(found.nodes)) for (const [field, input] of inputsOf(node)) if (input === name) node[field] = below;
  if (found.output === name) found.output = below || (Object.keys(found.nodes).at(-1) ?? "");
  return found;
};

/** The plan with an operator under another name, wherever it is named. */
export const renamed = (plan, name, to) => {
  const found = clone(plan);
  found.nodes = Object.fromEntries(Object.entries(found.nodes).map(([one, node]) => [one === name ? to : one, node]));
  for (const node of Object.values(found.nodes)) for (const [field, input] of inputsOf(node)) if (input === name) node[field] = to;
  if (found.output === name) found.output = to;
  return found;
};

/** The plan with a field of an operator set; undefined: without it. */
export const withField = (plan, name, field, value) => {
  const found = clone(plan);
  if (value === undefined) delete found.nodes[name][field];
  else found.nodes[name][field] = value;
  return found;
};

/** What differs, by path: `[{path, from, to}]`; undefined: it is not there. */
export const differences = (was, now, path = "") => {
  if (isObject(was) && isObject(now))
    return [...new Set([...Object.keys(was), ...Object.keys(now)])].flatMap((name) =>
      differences(was[name], now[name], path ? `${path}.${name}` : name),
    );
  return JSON.stringify(was) === JSON.stringify(now) ? [] : [{ path, from: was, to: now }];
};

/** The operator and the field that a refusal leads to: `nodes.a.where: ...`. @param {string} message */
export const placeOf = (plan, message) => {
  const path = /^nodes\.(.*?): /s.exec(message ?? "")?.[1];
  if (!path) return null;
  const name = Object.keys(nodesOf(plan))
    .filter((one) => path === one || path.startsWith(`${one}.`))
    .sort((one, other) => other.length - one.length)[0];
  return name === undefined ? null : { name, field: path.slice(name.length + 1).split(".")[0] || null };
};

/** One line on what an operator does. */
export const summaryOf = (node) => {
  const { op, source, where, window, columns, keys, calls, by, on, kind, text, query, count } = node;
  const list = (given) =>
    Object.entries(given ?? {})
      .map(([name, value]) => (name === value ? name : `${name}: ${value}`))
      .join(", ");
  switch (op) {
    case "scan":
      return [source, window && `[${window}]`, where].filter(Boolean).join(" ");
    case "filter":
      return where;
    case "project":
      return list(columns);
    case "aggregate":
      return [list(calls), keys && `by ${list(keys)}`].filter(Boolean).join(" ");
    case "sort":
      return [by ?? []].flat().join(", ");
    case "limit":
      return String(count ?? "");
    case "join":
    case "set_operation":
      return [kind, typeof on === "string" ? on : null].filter(Boolean).join(" ");
    case "sql":
      return text;
    case "shared":
      return query;
    default:
      return "";
  }
};

export const EMPTY = { version: 1, nodes: {}, output: "" };
