// Streams, tables and views: the list, one of them, and a new one.
import { html } from "../vendor/core.js";
import { CreateSource } from "./sources/create.js";
import { SourceList } from "./sources/list.js";
import { OneSource } from "./sources/one.js";

/** `#/sources`, `#/sources/NAME`, `#/sources?create=TOPIC`. */
export const SourcesView = ({ route }) => {
  const [, name] = route.path;
  if (name) return html`<${OneSource} key=${name} name=${name} />`;
  if (route.params.has("create"))
    return html`<${CreateSource} key=${route.params.get("create")} topic=${route.params.get("create") || null} />`;
  return html`<${SourceList} />`;
};
