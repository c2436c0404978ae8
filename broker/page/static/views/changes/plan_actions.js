// What is done with an edited plan: tried, applied to its query, made its text, or registered as a query of its own.

import { patch, post, put } from "../../lib/api.js";
import { Consequences } from "../../lib/attributes.js";
import { handleOf, keepHandle } from "../../lib/session.js";
import { valued } from "../../lib/units.js";
import { ErrorBox } from "../../lib/widgets.js";
import { html, useEffect, useState } from "../../vendor/core.js";
import { HandleForm } from "../query/access.js";

/** How a plan reaches its query: as the way it runs, or, where it means something else, as another text. */
const attempt = async (id, plan, sql, dry) => {
  const query = dry ? "?dry_run=true" : "";
  const handle = handleOf(id);
  try {
    return { told: await put(`plans/${id}${query}`, { plan }, { handle }), way: "apply" };
  } catch (error) {
    if (error.code !== "plan_is_another") throw error;
    if (!handle) return { told: null, way: "handle", another: error };
    return { told: await patch(`queries/${id}${query}`, { sql }, { handle }), way: "alter", another: error };
  }
};

const Values = ({ values }) => {
  const rows = Object.entries(values).filter(([name]) => name !== "text");
  return rows.length
    ? html`<ul>${rows.map(([name, { from, to }]) => html`<li key=${name}><code>${name}</code>: ${valued(from)} → <strong>${valued(to)}</strong></li>`)}</ul>`
    : null;
};

/** checked: what the broker says of the plan; null while it is not right. changed: whether it differs from the one that runs. */
export const PlanActions = ({ id, plan, changed, checked, onApplied }) => {
  const [tried, setTried] = useState(null);
  const [refused, setRefused] = useState(null);
  const opened = handleOf(id) !== null;
  const [done, setDone] = useState(null);
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    setTried(null);
    setRefused(null);
    if (!id || !checked || !changed) return;
    setDone(null);
    let left = false;
    attempt(id, plan, checked.sql, true).then(
      (found) => !left && setTried(found),
      (error) => !left && setRefused(error),
    );
    return () => {
      left = true;
    };
  }, [id, checked, changed, opened]);

  const run = async (work) => {
    setBusy(true);
    setRefused(null);
    try {
      setDone(await work());
      setTried(null);
    } catch (error) {
      setRefused(error);
    }
    setBusy(false);
  };
  const apply = () =>
    run(async () => {
      const { way } = await attempt(id, plan, checked.sql, false);
      onApplied();
      return way === "alter" ? "The query has the new text." : "It is applied.";
    });
  const register = () =>
    run(async () => {
      const found = await post("queries", { plan });
      keepHandle(found.query_id, found.handle);
      return html`It is registered: <a href=${`#/queries/${found.query_id}`}><code>${found.query_id}</code></a>. Its handle is kept in this tab.`;
    });

  const another = tried?.another;
  return html`<div class="plan-actions" aria-live="polite">
    ${another && html`<p><strong>With this plan it would be another query</strong>: ${another.message.split(": ")[0]} differs. ${tried.way === "handle" ? "To give the query this text its handle is needed; or register the plan as a query of its own." : "Apply gives the query another text."}</p>`}
    ${tried?.way === "handle" ? html`<${HandleForm} id=${id} why="To alter a query takes its handle." />` : null}
    ${tried?.told && html`<${Values} values=${tried.told.values} /><${Consequences} consequences=${tried.told.consequences} />`}
    ${tried?.told && !tried.told.consequences.length ? html`<p class="dim">It changes nothing that runs: names of operators and the order of conditions make no difference.</p>` : null}
    <${ErrorBox} error=${refused} />
    ${done && html`<p class="good" role="status">${done}</p>`}
    <div class="row">
      ${id ? html`<button type="button" class="main" disabled=${busy || !tried?.told} onClick=${apply}>${tried?.way === "alter" ? "Apply as another text" : "Apply"}</button>` : null}
      <button type="button" class=${id ? "" : "main"} disabled=${busy || !checked} onClick=${register}>Register as a new query</button>
    </div>
  </div>`;
};
