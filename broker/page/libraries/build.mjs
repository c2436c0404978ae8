// Bundles the libraries of the page: the same lock gives the same bytes.
import { copyFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const out = process.argv[2] ?? here("../static/vendor");

await build({
  absWorkingDir: here("."),
  entryPoints: ["core.js", "graph.js", "editor.js"],
  outdir: out,
  bundle: true,
  format: "esm",
  minify: true,
  target: "es2022",
  legalComments: "none",
  logLevel: "info",
});
await copyFile(here("node_modules/uplot/dist/uPlot.min.css"), `${out}/uPlot.css`);
