// Where nodes and edges are, as a worker lays them out.
import { useEffect, useRef, useState } from "../../vendor/core.js";
import { shapeOf } from "./model.js";

/** The size of a node, in px. */
export const WIDTH = 188;
export const HEIGHT = 76;

/**
 * The places of what is drawn, laid out again where nodes or edges are others: `[layout, error]`, null before the first.
 * direction: "LR" or "TB".
 * @param {{nodes: any[], edges: any[]}} drawn @param {string} direction
 * @returns {[{at: Map<string, {x: number, y: number}>, paths: Map<string, number[][]>, width: number, height: number}|null, string|null]}
 */
export const useLayout = (drawn, direction) => {
  const worker = useRef(null);
  const turn = useRef(0);
  const [layout, setLayout] = useState(null);
  const [error, setError] = useState(null);
  const shape = shapeOf(drawn);

  useEffect(() => {
    const one = new Worker(new URL("./layout_worker.js", import.meta.url), { type: "module" });
    worker.current = one;
    one.onmessage = ({ data }) => {
      if (data.turn !== turn.current) return;
      setError(null);
      setLayout({ ...data, at: new Map(data.at), paths: new Map(data.paths) });
    };
    one.onerror = (event) => setError(event.message || "the graph cannot be laid out here; the table has the same");
    return () => one.terminate();
  }, []);

  useEffect(() => {
    turn.current += 1;
    worker.current.postMessage({
      turn: turn.current,
      nodes: drawn.nodes.map((one) => one.key),
      edges: drawn.edges.map((one) => [one.from, one.to]),
      direction,
      width: WIDTH,
      height: HEIGHT,
    });
  }, [shape, direction]);

  return [layout, error];
};
