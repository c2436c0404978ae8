// The same graph as a table: for screen readers, phones, and whoever wants to sort.

import { bytes, count, duration, rate, share } from "../../lib/units.js";
import { html, useState } from "../../vendor/core.js";
import { titleOf } from "./graph.js";

const COLUMNS = [
  { id: "name", title: "node", of: (one) => `${one.title} ${one.name}` },
  { id: "rate", title: "rows out", of: (one) => one.rate, show: (one) => rate(one.rate) },
  { id: "cpu", title: "CPU, of a core", of: (one) => one.cpu, show: (one) => share(one.cpu) },
  { id: "bytes", title: "memory", of: (one) => one.bytes, show: (one) => bytes(one.bytes) },
  {
    id: "queued",
    title: "queued rows",
    of: (one) => one.queued ?? -1,
    show: (one) => (one.queued === null ? "–" : `${count(one.queued)}${one.oldest_ms ? `, ${duration(one.oldest_ms)}` : ""}`),
  },
  { id: "queries", title: "queries", of: (one) => one.queries, show: (one) => count(one.queries) },
];

/** drawn, selected, lit, onOpen: as of the graph. */
export const PlanTable = ({ drawn, selected, lit, onOpen }) => {
  const [by, setBy] = useState({ id: "name", down: false });
  const column = COLUMNS.find((one) => one.id === by.id);
  const compare = (one, other) => {
    const [a, b] = [column.of(one), column.of(other)];
    return (typeof a === "string" ? a.localeCompare(b) : a - b) * (by.down ? -1 : 1);
  };
  const nodes = drawn.nodes.filter((one) => lit === null || lit.has(one.key)).sort(compare);
  const names = new Map(drawn.nodes.map((one) => [one.key, `${titleOf(one)} ${one.name}`]));
  const below = (node) => drawn.edges.filter((one) => one.to === node.key).map((one) => names.get(one.from));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Nodes of the plan"><table>
    <thead><tr>
      ${COLUMNS.map(
        ({
          id,
          title,
        }) => html`<th key=${id} class=${id === "name" ? "" : "number"} aria-sort=${by.id === id ? (by.down ? "descending" : "ascending") : "none"}>
          <button type="button" class="plain small" onClick=${() => setBy({ id, down: by.id === id ? !by.down : id !== "name" })}>${title}${by.id === id ? (by.down ? " ↓" : " ↑") : ""}</button>
        </th>`,
      )}
      <th>reads</th>
    </tr></thead>
    <tbody>${nodes.map(
      (node) => html`<tr key=${node.key} class=${node.key === selected ? "selected" : ""}>
        <td><button type="button" class="plain small" data-key=${node.key} aria-pressed=${node.key === selected ? "true" : "false"} onClick=${() => onOpen(node)}>${titleOf(node)} <span class="dim">${node.name}</span></button></td>
        ${COLUMNS.slice(1).map((one) => html`<td key=${one.id} class="number">${one.show(node)}</td>`)}
        <td class="dim">${below(node).slice(0, 3).join("; ")}${below(node).length > 3 ? ` and ${count(below(node).length - 3)} more` : ""}</td>
      </tr>`,
    )}</tbody>
  </table></div>`;
};
