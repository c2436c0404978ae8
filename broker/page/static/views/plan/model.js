// The graph of what is drawn, made of entities: nodes, what flows between them, and like nodes folded into one.

/** Nodes of which more are folded. */
export const DRAWN_MAX = 150;
const OPENED_MAX = 150;
/** How much of a mean the last second is. */
const NEWEST = 0.2;

const KINDS = new Set(["source", "queue", "synopsis", "operator", "sink"]);
/** Types of entities by the first part of their ids, as people call them. */
const TITLES = {
  source: "source",
  "query-stem": "Query SteM",
  "data-stem": "rows",
  index: "index",
  join: "join",
  summary: "summary",
  promising: "promising set",
  sink: "changes",
  queries: "answers",
};

/**
 * @typedef {{id: string, shard: string, type: string, title: string, name: string, inputs: string[], entity: any, cpu: number}} PlanNode
 * @typedef {{key: string, group: string|null, type: string, title: string, name: string, members: PlanNode[], rate: number, rowsIn: number, cpu: number, part: number,
 *   bytes: number, queued: number|null, oldest_ms: number|null, queries: number}} Drawn
 * @typedef {{from: string, to: string, rate: number, selectivity: number|null, count: number, froms: string[]}} DrawnEdge
 */

/** The parts of an entity's id. @param {string} id @returns {{shard: string, type: string, name: string, title: string}} */
export const partsOf = (id) => {
  const [shard, first, ...rest] = id.split("/");
  const name = rest.join("/");
  if (first === "queue") {
    const [which, ...of] = rest;
    return { shard, type: `queue ${which}`, name: of.join("/"), title: which === "source" ? "intake queue" : "pending rows" };
  }
  if (first === "operator") {
    const [over, digested = ""] = [rest.slice(0, -1).join("/"), rest.at(-1)];
    const word = digested.replace(/-[0-9a-f]{12}$/, "");
    return { shard, type: `operator ${word}`, name: over, title: word.replaceAll("-", " ") };
  }
  if (first === "join") return { shard, type: first, name: rest.slice(1).join("/") || name, title: "join" };
  if (first === "sink") return { shard, type: first, name: rest.slice(0, -1).join("/"), title: TITLES.sink };
  return { shard, type: first, name, title: TITLES[first] ?? first };
};

/**
 * Computing time of each entity, ns a second, as a mean that forgets: operators are measured in one step of eight.
 * @param {Map<string, any>} entities @param {Map<string, number>} before what this gave of the last frame
 */
export const smoothed = (entities, before) => {
  const found = new Map();
  for (const [id, { moved }] of entities) {
    const now = moved?.cpu_ns ?? 0;
    const known = before.get(id);
    found.set(id, known === undefined ? now : known + (now - known) * NEWEST);
  }
  return found;
};

/** What is drawn of the entities. @param {Map<string, any>} entities @param {Map<string, number>} [cpu] as of `smoothed` @returns {PlanNode[]} */
export const nodesOf = (entities, cpu = new Map()) => {
  const found = new Map();
  for (const one of entities.values()) {
    if (!KINDS.has(one.kind)) continue;
    const parts = partsOf(one.id);
    if (parts.type === "queue changes") continue;
    found.set(one.id, { id: one.id, ...parts, inputs: [...(one.reads ?? [])], entity: one, cpu: cpu.get(one.id) ?? 0 });
  }
  for (const node of found.values()) {
    if (node.type === "source") {
      const queue = `${node.shard}/queue/source/${node.name}`;
      if (found.has(queue)) node.inputs.push(queue);
    }
    node.inputs = node.inputs.filter((id) => found.has(id));
    // What takes rows from SteMs is called by their sources alone, not by all that its queries are over.
    if (node.type.startsWith("operator") && node.inputs.length && node.inputs.every((id) => found.get(id).type === "query-stem"))
      node.name = node.inputs.map((id) => found.get(id).name).join("+");
  }
  return [...found.values()];
};

/** What is no part of the graph: settings, monitors, engines and such. @param {Map<string, any>} entities */
export const othersOf = (entities) => {
  const drawn = new Set(nodesOf(entities).map((one) => one.id));
  return [...entities.values()].filter((one) => one.kind !== "query" && !drawn.has(one.id));
};

/** Rows a second that leave each node. Queues and SteMs count no rows out: what comes to them goes on. */
const flowsOf = (nodes) => {
  const byId = new Map(nodes.map((one) => [one.id, one]));
  const found = new Map();
  const flow = (id) => {
    if (found.has(id)) return found.get(id);
    found.set(id, 0); // a cycle would end here
    const { type, inputs, entity } = byId.get(id);
    const { rows_in = 0, rows_out = 0 } = entity.moved ?? {};
    let rate = rows_out;
    if (type === "queue source") rate = 0;
    else if (type === "query-stem" || type === "data-stem") rate = rows_in;
    else if (type.startsWith("queue") || type === "index") rate = inputs.reduce((sum, each) => sum + flow(each), 0);
    found.set(id, rate);
    return rate;
  };
  for (const node of nodes) flow(node.id);
  return found;
};

/** Keys by which like nodes are one, the coarsest that is needed. level: 1: same type and inputs; 2: inputs alike; 3: sources too. */
const keysOf = (nodes, level) => {
  const byId = new Map(nodes.map((one) => [one.id, one]));
  const keys = new Map();
  const keyOf = (id) => {
    const known = keys.get(id);
    if (known !== undefined) return known;
    keys.set(id, id);
    const { shard, type, inputs } = byId.get(id);
    if (level < 3 && inputs.length === 0) return id;
    const below = level === 1 ? [...inputs].sort() : [...new Set(inputs.map(keyOf))].sort();
    const key = level < 3 ? JSON.stringify([shard, type, below]) : JSON.stringify([type, below]);
    keys.set(id, key);
    return key;
  };
  for (const node of nodes) keyOf(node.id);
  return keys;
};

const grouped = (nodes, keys) => {
  const groups = new Map();
  for (const node of nodes) {
    const key = keys.get(node.id);
    if (groups.has(key)) groups.get(key).push(node);
    else groups.set(key, [node]);
  }
  return groups;
};

/** @param {PlanNode[]} nodes @param {number} max @returns {Map<string, PlanNode[]>} */
const folded = (nodes, max) => {
  let groups = new Map(nodes.map((node) => [node.id, [node]]));
  for (let level = 1; groups.size > max && level <= 3; level += 1) groups = grouped(nodes, keysOf(nodes, level));
  return groups;
};

/**
 * What is drawn: nodes, like ones folded where there are many, and edges between them.
 * opened: keys of groups whose nodes stand apart. apart: ids that always do.
 * @param {PlanNode[]} nodes @param {{max?: number, opened?: Set<string>, apart?: Set<string>}} [options]
 * @returns {{nodes: Drawn[], edges: DrawnEdge[], folded: number}}
 */
export const drawnOf = (nodes, { max = DRAWN_MAX, opened = new Set(), apart = new Set() } = {}) => {
  const flows = flowsOf(nodes);
  const cpuOfAll = nodes.reduce((sum, one) => sum + one.cpu, 0);
  const place = new Map();
  const groups = new Map();
  let inGroups = 0;
  for (const [key, members] of folded(nodes, max)) {
    const left = [];
    for (const [number, node] of members.entries()) {
      const alone = members.length === 1 || apart.has(node.id) || (opened.has(key) && number < OPENED_MAX);
      if (alone) groups.set(node.id, { key: node.id, group: members.length > 1 ? key : null, members: [node] });
      else left.push(node);
      place.set(node.id, alone ? node.id : key);
    }
    if (left.length === 1) {
      place.set(left[0].id, left[0].id);
      groups.set(left[0].id, { key: left[0].id, group: key, members: left });
    } else if (left.length) {
      groups.set(key, { key, group: null, members: left });
      inGroups += left.length;
    }
  }
  const drawn = [...groups.values()].map(({ key, group, members }) => summed(key, group, members, flows, cpuOfAll));
  return { nodes: drawn, edges: edgesOf(nodes, place, flows), folded: inGroups };
};

const summed = (key, group, members, flows, cpuOfAll) => {
  const [first] = members;
  const names = new Set(members.map((one) => one.name));
  const of = (name, from = "statistics") => members.reduce((sum, one) => sum + (one.entity[from]?.[name] ?? 0), 0);
  const known = (name) => members.map((one) => one.entity.statistics[name]).filter((value) => typeof value === "number");
  const cpu = members.reduce((sum, one) => sum + one.cpu, 0);
  const queued = known("queued_rows");
  const oldest = known("oldest_ms");
  return {
    key,
    group,
    members,
    type: first.type,
    title: first.title,
    name: names.size === 1 ? first.name : `${names.size} names`,
    rate: members.reduce((sum, one) => sum + flows.get(one.id), 0),
    rowsIn: of("rows_in", "moved"),
    cpu: cpu / 1e9,
    part: cpuOfAll ? cpu / cpuOfAll : 0,
    bytes: of("memory_bytes"),
    queued: queued.length ? queued.reduce((sum, one) => sum + one, 0) : null,
    oldest_ms: oldest.length ? Math.max(...oldest) : null,
    queries: Math.max(...members.map((one) => one.entity.statistics.queries ?? 0)),
  };
};

const edgesOf = (nodes, place, flows) => {
  const found = new Map();
  const byId = new Map(nodes.map((one) => [one.id, one]));
  for (const node of nodes) {
    for (const input of node.inputs) {
      const [from, to] = [place.get(input), place.get(node.id)];
      if (from === to) continue;
      const id = `${from}\n${to}`;
      const edge = found.get(id) ?? { from, to, rate: 0, selectivity: null, count: 0, froms: [] };
      const { rows_in = 0, rows_out = 0 } = byId.get(input).entity.moved ?? {};
      const comes = node.entity.moved?.rows_in ?? 0;
      const goes = flows.get(input);
      // An operator with one input counts what comes to it; of several only what the other side gave is known.
      edge.rate += node.type === "source" ? comes : node.inputs.length === 1 && comes > 0 ? comes : goes;
      if (rows_in > 0 && byId.get(input).type.startsWith("operator")) edge.selectivity = rows_out / rows_in;
      edge.count += 1;
      edge.froms.push(input);
      found.set(id, edge);
    }
  }
  return [...found.values()].map((edge) => (edge.count > 1 ? { ...edge, selectivity: null } : edge));
};

/** What tells whether it must be laid out anew. @param {{nodes: Drawn[], edges: DrawnEdge[]}} drawn */
export const shapeOf = ({ nodes, edges }) =>
  `${nodes.map((one) => one.key).join("\n")}\n\n${edges.map((one) => `${one.from}>${one.to}`).join("\n")}`;
