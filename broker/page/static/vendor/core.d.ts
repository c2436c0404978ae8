export * from "../../libraries/core.js";
