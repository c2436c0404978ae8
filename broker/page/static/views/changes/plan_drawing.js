// A plan drawn as a tree: operators as boxes, the way of rows as arrows.
import { html, useMemo } from "../../vendor/core.js";
import { dagre } from "../../vendor/graph.js";
import { inputsOf, nodesOf, summaryOf } from "./plan_model.js";

const WIDTH = 190;
const HEIGHT = 50;
const LETTERS = 23;

const cut = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

/** Where boxes and arrows are; operators that are named and not there are left out. */
const layoutOf = (all) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "BT", nodesep: 24, ranksep: 34, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const nodes = Object.entries(all);
  for (const [name] of nodes) graph.setNode(name, { width: WIDTH, height: HEIGHT });
  for (const [name, node] of nodes)
    for (const [, input] of inputsOf(node)) if (input !== name && Object.hasOwn(all, input)) graph.setEdge(input, name);
  dagre.layout(graph);
  return {
    boxes: nodes.map(([name]) => ({ name, ...graph.node(name) })),
    lines: graph.edges().map((edge) => ({ key: `${edge.v} ${edge.w}`, points: graph.edge(edge).points })),
    ...graph.graph(),
  };
};

/** selected, wrong: names of operators; onSelect(name). */
export const PlanDrawing = ({ plan, selected, wrong, onSelect }) => {
  const nodes = nodesOf(plan);
  const shape = JSON.stringify(Object.entries(nodes).map(([name, node]) => [name, inputsOf(node)]));
  const { boxes, lines, width = 0, height = 0 } = useMemo(() => layoutOf(nodes), [shape]);
  const press = (event, name) => {
    if (!["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    onSelect(name);
  };
  return html`<div class="scroll drawing" tabindex="0" role="group" aria-label="The plan, rows go upwards">
    <svg width=${Math.max(WIDTH, width)} height=${Math.max(HEIGHT, height)} viewBox=${`0 0 ${Math.max(WIDTH, width)} ${Math.max(HEIGHT, height)}`}>
      <defs><marker id="plan-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" class="tip" /></marker></defs>
      ${lines.map(({ key, points }) => html`<polyline key=${key} points=${points.map(({ x, y }) => `${x},${y}`).join(" ")} marker-end="url(#plan-arrow)" />`)}
      ${boxes.map(
        ({ name, x, y, node = nodes[name] }) => html`<g
          key=${name}
          class=${`node ${name === selected ? "selected" : ""} ${name === wrong ? "wrong" : ""}`}
          transform=${`translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`}
          role="button"
          tabindex="0"
          aria-pressed=${name === selected}
          aria-label=${`${name}: ${node.op} ${summaryOf(node) ?? ""}${name === plan.output ? ", the answer" : ""}${name === wrong ? ", refused" : ""}`}
          onClick=${() => onSelect(name)}
          onKeyDown=${(event) => press(event, name)}
        >
          <rect width=${WIDTH} height=${HEIGHT} rx="7" />
          <text x="10" y="20"><tspan class="name">${cut(name)}</tspan></text>
          <text x="10" y="38" class="more">${cut(`${node.op ?? "?"} ${summaryOf(node) ?? ""}`)}</text>
          ${name === plan.output ? html`<circle cx=${WIDTH - 14} cy="15" r="5" class="output"><title>its rows are the answer</title></circle>` : null}
        </g>`,
      )}
    </svg>
  </div>`;
};
