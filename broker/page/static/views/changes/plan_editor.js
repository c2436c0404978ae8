// The plan of a query as a file: drawn and as JSON side by side, checked as one types, compared, tried and applied.

import { get, post } from "../../lib/api.js";
import { readOnly } from "../../lib/session.js";
import { Card, Empty, ErrorBox, Field, useLoaded } from "../../lib/widgets.js";
import { html, useEffect, useMemo, useRef, useState } from "../../vendor/core.js";
import { PlanActions } from "./plan_actions.js";
import { PlanDrawing } from "./plan_drawing.js";
import { OperatorForm } from "./plan_form.js";
import { differences, EMPTY, nodesOf, placeOf, renamed, withField, withNode, withoutNode } from "./plan_model.js";

const CHECKED_AFTER_MS = 400;
const SHOWN_MAX = 50;

const show = (plan) => JSON.stringify(plan, null, 2);

/** A plan, checked by the broker as it changes: `{checked, refused, busy}`; checked: its text, its columns. */
const useChecked = (plan) => {
  const [found, setFound] = useState({ checked: null, refused: null, busy: true });
  useEffect(() => {
    if (!plan || (!plan.sql && !Object.keys(nodesOf(plan)).length)) {
      setFound({ checked: null, refused: null, busy: false });
      return;
    }
    setFound((before) => ({ ...before, busy: true }));
    const abort = new AbortController();
    const timer = setTimeout(
      () =>
        post("plans/validate", { plan }, { signal: abort.signal }).then(
          (checked) => setFound({ checked, refused: null, busy: false }),
          (refused) => refused.name !== "AbortError" && setFound({ checked: null, refused, busy: false }),
        ),
      CHECKED_AFTER_MS,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [plan]);
  return found;
};

const AddOperator = ({ schemas, onAdd }) => {
  const [op, setOp] = useState("filter");
  return html`<form class="row" onSubmit=${(event) => {
    event.preventDefault();
    onAdd(schemas.find((one) => one.title === op));
  }}>
    <${Field} label="Operator">${(id) => html`<select id=${id} value=${op} onChange=${(event) => setOp(event.currentTarget.value)}>${schemas.map(({ title }) => html`<option key=${title} value=${title}>${title}</option>`)}</select>`}<//>
    <button>Add</button>
  </form>`;
};

const Differences = ({ base, plan }) => {
  const found = useMemo(() => differences(base, plan), [base, plan]);
  if (!found.length) return html`<p class="dim">The plan is as it runs.</p>`;
  const text = (value) => (value === undefined ? html`<span class="dim">nothing</span>` : html`<code>${JSON.stringify(value)}</code>`);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="What differs">
    <table>
      <caption>${found.length} ${found.length === 1 ? "difference" : "differences"} from the plan that runs</caption>
      <thead><tr><th scope="col">Where</th><th scope="col">It runs with</th><th scope="col">Here</th></tr></thead>
      <tbody>${found.slice(0, SHOWN_MAX).map((one) => html`<tr key=${one.path}><th scope="row"><code>${one.path}</code></th><td>${text(one.from)}</td><td>${text(one.to)}</td></tr>`)}</tbody>
    </table>
    ${found.length > SHOWN_MAX ? html`<p class="dim">The first ${SHOWN_MAX} are shown.</p>` : null}
  </div>`;
};

const Checked = ({ plan, checked, refused, busy }) => {
  if (refused) return html`<${ErrorBox} error=${refused} />`;
  if (checked)
    return html`<p class="good">It is right${busy ? " so far" : ""}: ${checked.columns.length} ${checked.columns.length === 1 ? "column" : "columns"}, ${checked.columns
      .slice(0, 8)
      .map((one) => `${one.name} ${one.type}`)
      .join(", ")}${checked.columns.length > 8 ? ", …" : ""}</p>
      <details><summary>As SQL</summary><pre>${checked.sql}</pre></details>`;
  return html`<p class="dim">${busy ? "Checking …" : plan && !Object.keys(nodesOf(plan)).length ? "Add an operator: begin with a scan of a source." : ""}</p>`;
};

/** id: the public id of a query; null: a plan from scratch. */
export const PlanEditor = ({ id }) => {
  const [base, error, again] = useLoaded((signal) => (id ? get(`plans/${id}`, { signal }) : Promise.resolve(null)), [id]);
  const [schema] = useLoaded((signal) => get("plans/schema", { signal }), []);
  const [plan, setPlan] = useState(id ? null : EMPTY);
  const [text, setText] = useState(id ? "" : show(EMPTY));
  const [wrong, setWrong] = useState(null);
  const [selected, setSelected] = useState(null);
  const begun = useRef(!id);
  const { checked, refused, busy } = useChecked(plan);

  useEffect(() => {
    if (begun.current || !base) return;
    begun.current = true;
    setPlan(base);
    setText(show(base));
  }, [base]);

  const edit = (next) => {
    setPlan(next);
    setText(show(next));
    setWrong(null);
  };
  const type = (next) => {
    setText(next);
    try {
      const read = JSON.parse(next);
      if (read === null || typeof read !== "object" || Array.isArray(read)) throw new Error("a plan is an object");
      setPlan(read);
      setWrong(null);
    } catch (failed) {
      setWrong(failed.message);
    }
  };

  if (error && !plan) return html`<h1>Plan</h1><${ErrorBox} error=${error} retry=${again} />`;
  if (!plan || !schema) return html`<h1>Plan</h1><p class="loading">…</p>`;
  const schemas = schema.properties.nodes.additionalProperties.oneOf;
  const nodes = nodesOf(plan);
  const node = selected !== null && Object.hasOwn(nodes, selected) ? nodes[selected] : undefined;
  const place = refused && placeOf(plan, refused.message);
  const names = Object.keys(nodes);
  const add = (of) => {
    const [next, name] = withNode(plan, of, node ? selected : plan.output || null);
    edit(next);
    setSelected(name);
  };

  return html`
    <div class="heading">
      <h1>${id ? "Plan of a query" : "A new plan"}</h1>
      ${id && html`<a href=${`#/queries/${id}`}><code>${id}</code></a>`}
      <div class="tools"><a href="#/changes">All changes</a>${id && base ? html`<button type="button" onClick=${() => edit(base)}>As it runs</button>` : null}</div>
    </div>
    <div class="plan-editor">
      <${Card} title="Drawn">
        ${names.length ? html`<${PlanDrawing} plan=${plan} selected=${selected} wrong=${place?.name} onSelect=${setSelected} />` : html`<${Empty}>${plan.sql ? "This query has no form in operators: its plan is its text." : "No operator yet."}<//>`}
        <${AddOperator} schemas=${schemas} onAdd=${add} />
        ${
          node &&
          html`<${OperatorForm}
            key=${selected}
            name=${selected}
            node=${node}
            schema=${schemas.find((one) => one.title === node.op)}
            names=${names.filter((one) => one !== selected)}
            isOutput=${plan.output === selected}
            refused=${place?.name === selected ? { field: place.field, message: refused.message } : null}
            onField=${(field, value) => edit(withField(plan, selected, field, value))}
            onRename=${(to) => {
              if (names.includes(to)) return;
              edit(renamed(plan, selected, to));
              setSelected(to);
            }}
            onRemove=${() => {
              edit(withoutNode(plan, selected));
              setSelected(null);
            }}
            onOutput=${() => edit({ ...plan, output: selected })}
          />`
        }
      <//>
      <${Card} title="As JSON">
        <${Field} label="The plan as a file" error=${wrong && `not JSON yet: ${wrong}`}>
          ${(field, more) => html`<textarea id=${field} class="mono" rows="22" spellcheck=${false} aria-describedby=${more} value=${text} onInput=${(event) => type(event.currentTarget.value)}></textarea>`}
        <//>
        <div aria-live="polite"><${Checked} plan=${plan} checked=${checked} refused=${refused} busy=${busy} /></div>
      <//>
    </div>
    <${Card} title=${id ? "What it will do" : "Register it"}>
      ${id && base ? html`<${Differences} base=${base} plan=${plan} />` : null}
      ${
        readOnly.value
          ? html`<p class="dim">Read only: nothing is applied from here.</p>`
          : html`<${PlanActions} id=${id} plan=${plan} changed=${!base || differences(base, plan).length > 0} checked=${wrong || busy ? null : checked} onApplied=${() => {
              begun.current = false;
              again();
            }} />`
      }
    <//>`;
};
