// Dropping a source: what reads it is said before.

import { del } from "../../lib/api.js";
import { count } from "../../lib/units.js";
import { Confirm } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";
import { sourcePath } from "./words.js";

/** source: of `GET /sources/{name}`. */
export const DropDialog = ({ source, onClose, onDropped }) => {
  const { queries, views, summaries, referring } = source.read_by;
  const read = queries + views.length + summaries.length > 0;
  const [cascade, setCascade] = useState(false);
  const drop = async () => {
    await del(`${sourcePath(source.name)}${cascade ? "?cascade=true" : ""}`);
    onDropped();
  };
  return html`<${Confirm} title=${`Drop the ${source.kind} ${source.name}?`} action="Drop" danger onDone=${drop} onClose=${onClose}>
    <p>${source.kind === "view" ? "The view goes; what it reads stays." : `The ${source.kind} and the rows that the broker keeps of it go. The topic ${source.topic} and its records stay in Kafka.`}</p>
    ${
      read &&
      html`<p>It is read by:</p>
        <ul>
          ${queries > 0 && html`<li>${count(queries)} ${queries === 1 ? "query" : "queries"}</li>`}
          ${views.length > 0 && html`<li>views: ${views.join(", ")}</li>`}
          ${summaries.length > 0 && html`<li>summaries: ${summaries.join(", ")}</li>`}
        </ul>
        <label><input type="checkbox" checked=${cascade} onChange=${(event) => setCascade(event.currentTarget.checked)} /> Drop all of these too. Their answers are lost.</label>
        ${!cascade && html`<p class="dim">Without that the broker refuses to drop it.</p>`}`
    }
    ${referring.length > 0 && html`<p class="warn">Constraints of ${referring.join(", ")} refer to it: drop ${referring.length === 1 ? "that" : "those"} first.</p>`}
  <//>`;
};
