export * from "../../libraries/editor.js";
