// The plan of a query, drawn as a tree: the answer at the top, what it reads below.
import { html, useState } from "../vendor/core.js";
import { Remarks } from "./remarks.js";
import { bytes, count, duration, rate, share, short } from "./units.js";
import { Badge } from "./widgets.js";

const PATTERNS = {
  MON: "rows only come",
  WKS: "rows leave in the order in which they came",
  WK: "rows leave at an instant that is known when they come",
  STR: "rows may leave at any instant",
};
const OPERATORS =
  /^(project|aggregate|filter|distinct|sort by|limit|number rows|semi join|anti join|(as of )?(inner|left|right|full|cross|semi|anti) join|cross join|union|intersect|except|istream|dstream|rstream)\b/;

const depthOf = (line) => line.length - line.trimStart().length;

/** Lines of the plan of an inner query, the first of them `select from ...`, as a tree. */
const innerTree = ([head, ...lines]) => {
  const base = lines.length ? Math.min(...lines.map(depthOf)) : 0;
  const groups = [{ operator: head.trim().replace(/^select from/, "scan"), details: [] }];
  for (const line of lines) {
    const text = line.slice(base);
    if (depthOf(line) === base && OPERATORS.test(text)) groups.push({ operator: text, details: [] });
    else groups.at(-1).details.push(groups.length > 1 ? text.slice(2) : text);
  }
  return chain(groups);
};

/** Operators from the scan up as a tree; what their details say of an inner query becomes an input of its own. */
const chain = (steps) =>
  steps.reduce((below, { details, ...step }) => {
    const begin = details.findIndex((line) => line.startsWith("select from "));
    const inner = begin < 0 ? [] : [innerTree(details.slice(begin))];
    return { ...step, details: begin < 0 ? details : details.slice(0, begin), inputs: below ? [below, ...inner] : inner };
  }, null);

const emitsInto = ({ into, insert }) => (insert ? `into ${insert.stream}` : into ? `into ${into}` : "");

/** The operators of a query's answer as a tree. @param {any} plan as `GET /queries/{handle}/plan` has it */
export const answerTree = (plan) => {
  const tree = chain(plan.steps);
  return plan.emit
    ? {
        operator: plan.emit.insert ? "insert" : `emit ${plan.operator}`,
        details: [plan.operator_rule, emitsInto(plan.emit)].filter(Boolean),
        inputs: [tree],
      }
    : tree;
};

const expected = ({ fp, fn, error }) =>
  [fp != null && `${share(fp)} wrong`, fn != null && `${share(fn)} missing`, error != null && `± ${share(error)}`]
    .filter(Boolean)
    .join(", ");

const Pattern = ({ pattern }) =>
  html`<${Badge} state=${pattern.startsWith("STR") ? "warn" : ""} title=${`update pattern: ${PATTERNS[pattern.split(" ")[0]] ?? pattern}`}>${pattern}<//>`;

const figures = (node) => {
  const found = [];
  if (node.estimated_rows != null) found.push(["estimated", `${short(Math.round(node.estimated_rows))} rows`]);
  if (node.estimated_ns != null) found.push(["estimated time", duration(node.estimated_ns / 1e6)]);
  if (node.actual_rows != null)
    found.push(["measured", `${count(node.actual_rows)} rows`], ["measured time", duration(node.actual_ns / 1e6)]);
  if (node.cost) {
    const ns = node.cost.terms.reduce((sum, term) => sum + term.ns, 0);
    found.push(["gives, estimated", rate(node.cost.rows_per_s, "rows")], ["costs", `${duration(ns / 1e6)}/s`]);
    for (const kept of node.cost.kept) found.push(["keeps", `${short(Math.round(kept.rows))} rows of ${kept.of}, ${kept.structure}`]);
  }
  if (node.state?.queries) found.push(["shared by", `${count(node.state.queries)} ${node.state.queries === 1 ? "query" : "queries"}`]);
  if (node.state?.rows) found.push(["holds", `${count(node.state.rows)} rows, ${bytes(node.state.bytes)}`]);
  if (node.state?.premature) found.push(["left early", share(node.state.premature)]);
  return found;
};

const Operator = ({ node, sharing }) => html`<li>
  <div class="operator">
    <div class="title"><strong>${node.operator}</strong>${node.pattern && html` <${Pattern} pattern=${node.pattern} />`}${node.expected && html` <${Badge} state="warn" title="expected precision of what leaves it">${expected(node.expected)}<//>`}</div>
    ${node.details.length > 0 && html`<div class="details mono">${node.details.map((line, place) => html`<div key=${place} style=${{ paddingLeft: `${depthOf(line) * 0.5}rem` }}>${line.trim()}</div>`)}</div>`}
    ${node.reason && html`<div class="details">worked out again: ${node.reason}</div>`}
    ${sharing(node).map((line) => html`<div class="details good" key=${line}>${line}</div>`)}
    <div class="figures">${figures(node).map(([name, value]) => html`<span key=${name + value}><span class="dim">${name}</span> ${value}</span>`)}</div>
  </div>
  ${node.inputs.length > 0 && html`<ul>${node.inputs.map((one, place) => html`<${Operator} key=${place} node=${one} sharing=${sharing} />`)}</ul>`}
</li>`;

/** What a scan says of the predicates of its source that other queries have too. */
const sharingOf = (plan) => (node) => {
  const source = node.operator === "scan" ? node.details[0] : node.operator.match(/^scan (\S+)/)?.[1];
  if (source === undefined) return [];
  const found = plan.predicates
    .filter((one) => one.source === source && one.shared_with > 0)
    .map((one) => `shares its predicate ${one.predicate} with ${count(one.shared_with)} ${one.shared_with === 1 ? "query" : "queries"}`);
  const view = plan.views?.find((one) => one.source === source);
  if (view?.queries > 1 || (plan.query_id === null && view?.queries))
    found.push(`${count(view.queries)} ${view.queries === 1 ? "query reads" : "queries read"} the store of ${source}`);
  return found;
};

/**
 * The plan of a query: a tree for its answer, one for its changes, and what was decided for all of it.
 * @param {{plan: any, heading?: any}} props plan: as `GET /queries/{handle}/plan` and EXPLAIN have it
 */
export const ExplainTree = ({ plan }) => {
  const [of, setOf] = useState("answer");
  const hasGraph = !plan.preference;
  const tree = of === "changes" && hasGraph ? plan.graph : answerTree(plan);
  const facts = [
    ["Maintenance", html`<strong>${plan.maintenance}</strong> <span class="dim">${plan.reason}</span>`],
    ["Changes", html`${plan.operator} <span class="dim">${plan.operator_rule}</span>`],
    ["Key", plan.key ? plan.key.join(", ") : html`<span class="dim">none: rows are told apart by all their values</span>`],
    plan.strategy &&
      hasGraph && [
        "Strategy",
        html`${[plan.strategy.strategy, plan.strategy.structure].filter(Boolean).join(", ")} <span class="dim">${plan.strategy.reason}</span>`,
      ],
    plan.waits_for.length > 0 && [
      "Waits for",
      html`<span class="warn">${plan.waits_for.join(", ")}</span> <span class="dim">no row has come yet, so there is no NOW</span>`,
    ],
    Object.keys(plan.tolerance).length > 0 && [
      "Allows",
      Object.entries(plan.tolerance)
        .map(([name, value]) => `${name} ${value}`)
        .join(", "),
    ],
    plan.paused && ["Paused", "it has no answer until it is resumed"],
    ...(plan.preference?.notes ?? []).map((note) => ["Preference", note]),
  ].filter(Boolean);
  return html`<div class="explain">
    <${Remarks} of=${{ catching_up: plan.catching_up }} />
    ${
      hasGraph &&
      html`<div class="row" role="group" aria-label="Which plan is drawn">
      ${[
        ["answer", "Answer"],
        ["changes", "Changes"],
      ].map(
        ([id, title]) =>
          html`<button type="button" class="small" key=${id} aria-pressed=${of === id} title=${id === "answer" ? "the operators that an answer is computed by" : "the operators that changes come from while it is followed"} onClick=${() => setOf(id)}>${title}</button>`,
      )}
    </div>`
    }
    <div class="scroll" tabindex="0" role="region" aria-label="Plan"><ul class="tree"><${Operator} node=${tree} sharing=${sharingOf(plan)} /></ul></div>
    <dl class="facts">${facts.map(([name, value], place) => html`<dt key=${`t${place}`}>${name}</dt><dd key=${`d${place}`}>${value}</dd>`)}</dl>
  </div>`;
};
