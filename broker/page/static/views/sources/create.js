// A new source: a topic is chosen, its statement is inferred, corrected in a form or as text, and run.

import { get, post, queryString } from "../../lib/api.js";
import { readOnly } from "../../lib/session.js";
import { count } from "../../lib/units.js";
import { Card, Empty, ErrorBox, Field, useLoaded } from "../../lib/widgets.js";
import { html, useEffect, useState } from "../../vendor/core.js";
import { InferredForm } from "./form.js";
import { formOf, nameSql, quoted, statementOf } from "./statement.js";
import { sourceHref } from "./words.js";

const TYPED_MS = 250;

/** What is typed, once the typing rests. */
const useRested = (text) => {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return rested;
};

const Topics = () => {
  const [search, setSearch] = useState("");
  const wanted = useRested(search.trim());
  const [found, error, again] = useLoaded((signal) => get(`topics${queryString({ search: wanted })}`, { signal }), [wanted]);
  const choose = (topic) => (location.hash = `#/sources?create=${encodeURIComponent(topic)}`);
  return html`<${Card} title="Which topic?" tools=${html`<button type="button" class="small" onClick=${again}>Look again</button>`}>
    <div class="row"><${Field} label="Search">${(id) => html`<input id=${id} type="search" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} />`}<//></div>
    <${ErrorBox} error=${error} />
    ${!found && !error && html`<p class="dim" role="status">Asking Kafka …</p>`}
    ${found && found.topics.length === 0 && html`<${Empty}>${wanted ? "No topic has this in its name." : "Kafka has no topic yet. Write the statement yourself: it makes the topic."} <button type="button" onClick=${() => choose(wanted || "my_topic")}>Write it for ${wanted || "my_topic"}</button><//>`}
    ${
      found &&
      found.topics.length > 0 &&
      html`<div class="scroll" tabindex="0" role="region" aria-label="Table of topics"><table class="described">
        <thead><tr><th scope="col">Topic</th><th scope="col" class="number">Partitions</th><th scope="col" class="number">Records, at most</th><th scope="col">Read by</th><th scope="col"><span class="visually-hidden">Choose</span></th></tr></thead>
        <tbody>${found.topics.map(
          (
            one,
          ) => html`<tr key=${one.topic}><th scope="row"><code>${one.topic}</code></th><td class="number">${count(one.partitions)}</td><td class="number">${count(one.records)}</td>
            <td>${one.sources.map((name, place) => html`${place ? ", " : ""}<a href=${sourceHref(name)}>${name}</a>`)}</td>
            <td><button type="button" class="small" aria-label=${`Infer columns of ${one.topic}`} onClick=${() => choose(one.topic)}>Infer columns</button></td></tr>`,
        )}</tbody>
      </table></div>
      ${found.total > found.topics.length && html`<p class="dim">The first ${count(found.topics.length)} of ${count(found.total)}: search for the others.</p>`}`
    }
  <//>`;
};

/** The line of a text that an error means, with a caret below its place. */
export const Caret = ({ text, error }) => {
  if (!error?.line) return null;
  const line = text.split("\n")[error.line - 1] ?? "";
  return html`<pre class="caret" aria-hidden="true">${line}${"\n"}${" ".repeat(Math.max(0, (error.column ?? 1) - 1))}^</pre>`;
};

const Warnings = ({ warnings }) =>
  warnings.length > 0 &&
  html`<ul>${warnings.map((one) => html`<li key=${one.code + one.message}><span class="warn">${one.message}</span> <span class="dim">${one.hint}</span></li>`)}</ul>`;

const Created = ({ made }) => html`<${Card} title=${made.state === "RUNNING" ? "Created" : "Written, not yet carried out"}>
  <p role="status">The ${made.kind} <a href=${sourceHref(made.name)}>${made.name}</a> is ${made.state}${made.topic ? html`, over topic <code>${made.topic}</code>${made.topic_existed === false ? ", which was made" : ""}` : ""}.</p>
  <${Warnings} warnings=${made.warnings ?? []} />
<//>`;

/** The text, and what became of it. */
const Statement = ({ text, own, onText, onReset }) => {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [made, setMade] = useState(null);
  const create = async (event) => {
    event.preventDefault();
    setBusy(true);
    setMade(null);
    try {
      setMade(await post("sources", { sql: text }));
      setError(null);
    } catch (refused) {
      setError(refused);
    }
    setBusy(false);
  };
  return html`<${Card} title="Statement" tools=${own && onReset && html`<button type="button" class="small" onClick=${onReset}>From the form again</button>`}>
    <form onSubmit=${create}>
      <${Field} label="CREATE STREAM or CREATE TABLE" hint=${own && onReset ? "You changed the text: the form beside it no longer does." : ""}>
        ${(id, more) => html`<textarea id=${id} aria-describedby=${more} class="mono" spellcheck=${false} rows="14" value=${text} onInput=${(event) => onText(event.currentTarget.value)}></textarea>`}
      <//>
      <${ErrorBox} error=${error} />
      <${Caret} text=${text} error=${error} />
      <div class="row"><button type="submit" class="main" disabled=${busy || readOnly.value}>${busy ? "Creating …" : "Create"}</button>${readOnly.value && html`<span class="dim">this page is read-only</span>`}</div>
    </form>
    ${made && html`<${Created} made=${made} />`}
  <//>`;
};

const Infer = ({ topic }) => {
  const [found, error, again] = useLoaded((signal) => post("sources/infer", { topic }, { signal }), [topic]);
  const [form, setForm] = useState(null);
  const [own, setOwn] = useState(null);
  useEffect(() => {
    if (found) setForm(found.sql ? formOf(found) : null);
  }, [found]);
  const blank = `CREATE STREAM ${nameSql(topic.toLowerCase().replace(/[^a-z0-9]+/g, "_"))} (\n    id BIGINT\n) WITH (topic = ${quoted(topic)})`;
  const text = own ?? (form ? statementOf(form) : blank);
  if (!found && !error) return html`<p class="dim" role="status">Reading the newest records of ${topic} …</p>`;
  return html`<div class="inferring">
    <div>
      <${ErrorBox} error=${error} retry=${again} />
      ${found && html`<${InferredForm} found=${found} form=${form} onForm=${setForm} disabled=${own !== null} onAgain=${again} />`}
    </div>
    <${Statement} text=${text} own=${own !== null} onText=${setOwn} onReset=${form && (() => setOwn(null))} />
  </div>`;
};

/** @param {{topic: string|null}} props */
export const CreateSource = ({ topic }) => html`
  <div class="heading"><h1>Create a source</h1><div class="tools">${topic !== null && html`<a href="#/sources?create=">Another topic</a>`}<a href="#/sources">All sources</a></div></div>
  ${topic === null ? html`<${Topics} />` : html`<${Infer} topic=${topic} />`}`;
