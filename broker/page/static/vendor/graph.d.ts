export * from "../../libraries/graph.js";
