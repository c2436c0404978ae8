// The frame of the page: where one is, what the connection is like, and who one is.

import { NO_PLACE } from "./lib/places.js";
import { dark, keepHandlesOfAddress, locked, me, readOnly, theme, token, tokenWanted } from "./lib/session.js";
import { clockAhead, connection, follow, status } from "./lib/status.js";
import { duration } from "./lib/units.js";
import { Dialog, Field } from "./lib/widgets.js";
import { html, render, signal, useEffect, useErrorBoundary, useState } from "./vendor/core.js";
import { ChangesView } from "./views/changes.js";
import { OverviewView } from "./views/overview.js";
import { PlanView } from "./views/plan.js";
import { QueriesView } from "./views/queries.js";
import { QueryView } from "./views/query.js";
import { SourcesView } from "./views/sources.js";
import { StatementsView } from "./views/statements.js";

const VIEWS = [
  { path: "", title: "Overview", view: OverviewView },
  { path: "queries", title: "Queries", view: QueriesView },
  { path: "plan", title: "Plan", view: PlanView },
  { path: "sources", title: "Sources", view: SourcesView },
  { path: "changes", title: "Changes", view: ChangesView },
  { path: "statements", title: "Statements", view: StatementsView },
];

/** What a part of an address says; of one that is written wrong, as `%`, itself. */
const decoded = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

/** `#/a/b?c=d` as `{path: ["a", "b"], params}`. */
const read = () => {
  const [path, params = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), params: new URLSearchParams(params) };
};

await keepHandlesOfAddress();
/** Where one is: `{path, params}`. */
export const route = signal(read());
addEventListener("hashchange", async () => {
  await keepHandlesOfAddress();
  const moved = route.value.path.join("/") !== read().path.join("/");
  route.value = read();
  if (!moved) return;
  document.querySelector("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
});

/** @param {{path: string[]}} where */
const viewOf = ({ path: [first = "", second] }) =>
  first === "queries" && second ? QueryView : (VIEWS.find((one) => one.path === first)?.view ?? null);

const Connection = () => {
  const { state, since_ms, error } = connection.value;
  if (state === "open" && status.value) {
    const { ready, degraded } = status.value;
    if (!ready) return html`<a class="state bad" href="#/">not ready</a>`;
    return degraded.length ? html`<a class="state warn" href="#/">degraded</a>` : html`<span class="state good">live</span>`;
  }
  if (state === "hidden") return html`<span class="state dim">resting</span>`;
  return html`<span class="state bad" title=${error?.message}>${status.value ? `no connection since ${new Date(since_ms).toISOString().slice(11, 19)} UTC` : "connecting"}</span>`;
};

const Banner = () => {
  const { broken, error } = connection.value;
  if (broken && error?.code === NO_PLACE.code)
    return html`<div class="banner warn" role="alert">Nothing new is shown: ${error.message}. To go on, ${error.hint}.</div>`;
  if (status.value && broken)
    return html`<div class="banner bad" role="alert">The broker does not answer${error?.message && error.code !== "no_connection" ? `: ${error.message}` : ""}. What you see is of ${new Date(status.value.at_ms).toISOString().slice(11, 19)} UTC; the page comes back by itself.</div>`;
  if (Math.abs(clockAhead.value) > 30_000)
    return html`<div class="banner warn">The broker's clock is ${duration(Math.abs(clockAhead.value))} ${clockAhead.value > 0 ? "ahead of" : "behind"} this browser's. Times are the broker's.</div>`;
  return null;
};

const TokenDialog = () => {
  const [given, setGiven] = useState("");
  if (tokenWanted.value === null) return null;
  const use = (event) => {
    event.preventDefault();
    tokenWanted.value = null;
    token.value = given.trim() || null;
    follow();
  };
  return html`<${Dialog} title="Token" onClose=${() => (tokenWanted.value = null)}>
    <form onSubmit=${use}>
      <p>The broker says: ${tokenWanted.value}. The token is kept in this tab alone.</p>
      <${Field} label="Token">${(id) => html`<input id=${id} type="password" autocomplete="off" value=${given} onInput=${(event) => setGiven(event.currentTarget.value)} />`}<//>
      <footer><button class="main">Use it</button></footer>
    </form>
  <//>`;
};

/** What the browser calls this view, in its tabs and its history. @param {{path: string[]}} where */
const titleOf = ({ path: [first = "", second] }) => {
  const view = VIEWS.find((one) => one.path === first)?.title ?? "No such view";
  return `${second && first === "queries" ? `Query ${second}` : second ? `${second} · ${view}` : view} · Tureen`;
};

const Frame = () => {
  const [first = ""] = route.value.path;
  const title = titleOf(route.value);
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [first]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.querySelector("main").focus();
    }}>To the content</a>
    <header class="top">
      <a class="brand" href="#/">Tureen</a>
      <nav aria-label="Views">${VIEWS.map(({ path, title }) => html`<a key=${path} href=${`#/${path}`} aria-current=${first === path ? "page" : undefined}>${title}</a>`)}</nav>
      <div class="tools">
        <span role="status"><${Connection} /></span>
        <button type="button" class="plain" aria-pressed=${readOnly.value} disabled=${me.value?.read_only === true} title="Look, change nothing" onClick=${() => (locked.value = locked.value === "yes" ? "no" : "yes")}>${readOnly.value ? "Read only" : "May edit"}</button>
        <button type="button" class="plain" title="Light or dark" aria-label=${dark.value ? "Use the light theme" : "Use the dark theme"} onClick=${() => (theme.value = dark.value ? "light" : "dark")}>${dark.value ? "☾" : "☀"}</button>
        <a href="docs" title="The API">API</a>
      </div>
    </header>
    <${Banner} />
    <main id="main" tabindex="-1"><${Shown} key=${route.value.path.join("/")} /></main>
    <${TokenDialog} />`;
};

const Shown = () => {
  const [error, reset] = useErrorBoundary((thrown) => console.error(thrown));
  const View = viewOf(route.value);
  if (error)
    return html`<div class="error" role="alert"><p><strong>This view failed:</strong> ${error.message}</p><button type="button" onClick=${reset}>Show it again</button></div>`;
  if (!View) return html`<h1>There is no such view</h1><p><a href="#/">Overview</a></p>`;
  return html`<${View} route=${route.value} />`;
};

follow();
const place = document.getElementById("page");
place.replaceChildren();
render(html`<${Frame} />`, place);
