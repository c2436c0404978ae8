// Layout of graphs.
export { default as dagre } from "@dagrejs/dagre";
