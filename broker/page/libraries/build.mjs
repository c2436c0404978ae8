// Bundles the libraries of the page: the same lock gives the same bytes. `node build.mjs [folder]`
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const out = process.argv[2] ?? here("../static/vendor");

const { metafile } = await build({
  absWorkingDir: here("."),
  entryPoints: ["core.js", "graph.js", "editor.js"],
  outdir: out,
  bundle: true,
  format: "esm",
  minify: true,
  target: "es2022",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
await writeFile(`${out}/uPlot.css`, await readFile(here("node_modules/uplot/dist/uPlot.min.css")));

/** The name of the package that a file of node_modules is of. */
const packageOf = (path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];

const described = async (name) => {
  const { version, license } = JSON.parse(await readFile(here(`node_modules/${name}/package.json`), "utf8"));
  const file = (await readdir(here(`node_modules/${name}`))).find((one) => /^licen[sc]e(\.(md|txt))?$/i.test(one));
  if (!file) throw new Error(`${name} ${version} comes without the text of its licence (${license})`);
  const text = (await readFile(here(`node_modules/${name}/${file}`), "utf8")).replaceAll("\r\n", "\n").trim();
  return { name, version, license, text };
};

const bundles = {};
const names = new Set();
const bundle = async (file, libraries) => {
  const data = await readFile(`${out}/${file}`);
  bundles[file] = { bytes: data.length, sha256: createHash("sha256").update(data).digest("hex"), libraries };
  for (const name of libraries) names.add(name);
};
for (const [path, { inputs }] of Object.entries(metafile.outputs)) {
  const libraries = new Set(Object.keys(inputs).map(packageOf).filter(Boolean));
  await bundle(path.slice(path.lastIndexOf("/") + 1), [...libraries].sort());
}
await bundle("uPlot.css", ["uplot"]);

const libraries = await Promise.all([...names].sort().map(described));
const ordered = Object.fromEntries(Object.entries(bundles).sort(([one], [other]) => (one < other ? -1 : 1)));
const versions = {
  bundles: ordered,
  libraries: libraries.map(({ name, version, license }) => ({ name, version, license })),
};
await writeFile(`${out}/versions.json`, `${JSON.stringify(versions, null, 2)}\n`);
const licenses = libraries.map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}\n`);
await writeFile(`${out}/LICENSES.txt`, licenses.join(`\n${"-".repeat(100)}\n\n`));
