// Lays graphs out, apart from the page, so that it never waits.
import { dagre } from "../../vendor/graph.js";

addEventListener("message", ({ data: { turn, nodes, edges, direction, width, height } }) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: direction, nodesep: 20, ranksep: direction === "LR" ? 92 : 60, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of nodes) graph.setNode(id, { width, height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const at = nodes.map((id) => {
    const { x, y } = graph.node(id);
    return [id, { x: x - width / 2, y: y - height / 2 }];
  });
  const paths = edges.map(([from, to]) => [`${from}\n${to}`, graph.edge(from, to).points.map(({ x, y }) => [x, y])]);
  const { width: wide, height: high } = graph.graph();
  postMessage({ turn, at, paths, width: wide, height: high });
});
