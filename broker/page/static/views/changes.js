// What can be changed while it runs: settings of all kinds, memory, queries, and plans.

import { readOnly } from "../lib/session.js";
import { html } from "../vendor/core.js";
import { GroupsOfSettings } from "./changes/groups.js";
import { MemoryPanel } from "./changes/memory.js";
import { PlanEditor } from "./changes/plan_editor.js";
import { QueryOptions } from "./changes/query_options.js";
import { Switches } from "./changes/switches.js";

export const ChangesView = ({ route }) => {
  const [, part, id = null] = route.path;
  if (part === "plan") return html`<${PlanEditor} key=${id} id=${id} />`;
  return html`
    <div class="heading">
      <h1>Changes</h1>
      <p class="dim">Everything here is set while queries run. What it does is said before you apply it.</p>
      <div class="tools"><a href="#/changes/plan">Draw a new plan</a></div>
    </div>
    ${readOnly.value && html`<p class="dim">Read only: values are shown, nothing is changed from here.</p>`}
    <${Switches} />
    <${MemoryPanel} />
    <${GroupsOfSettings} />
    <${QueryOptions} />`;
};
