// The handle of a query: asked for where it is needed, kept in this tab alone.

import { get } from "../../lib/api.js";
import { keepHandle } from "../../lib/session.js";
import { ErrorBox, Field } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";

const FORM = /^[A-Za-z0-9_.~-]{22,200}$/;
const NOT_ITS = {
  message: "this handle does not open this query",
  hint: "each query has its own; the query may also be gone",
  code: "unknown_query",
};
const NO_HANDLE = { message: "this is no handle", hint: "a handle has 22 to 200 characters of A-Z a-z 0-9 - _ . ~", code: "bad_request" };

/** The path of a query. @param {string} id @param {string} [rest] */
export const queryPath = (id, rest = "") => `queries/${encodeURIComponent(id)}${rest}`;

/** Asks for the handle; why: what it is needed for. */
export const HandleForm = ({ id, why }) => {
  const [given, setGiven] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const open = async (event) => {
    event.preventDefault();
    const handle = given.trim();
    if (!FORM.test(handle)) {
      setError(NO_HANDLE);
      return;
    }
    setBusy(true);
    try {
      await get(queryPath(id), { handle });
      keepHandle(id, handle);
    } catch (refused) {
      setError(refused.code === "unknown_query" ? NOT_ITS : refused);
      setBusy(false);
    }
  };
  return html`<form class="query-handle" onSubmit=${open}>
    <p>${why} It stays in this tab: it is in no address and no log.</p>
    <div class="row">
      <${Field} label="Handle">${(input) => html`<input id=${input} type="password" autocomplete="off" spellcheck=${false} value=${given} onInput=${(event) => setGiven(event.currentTarget.value)} />`}<//>
      <button class="main" disabled=${busy || !given.trim()}>Open the answer</button>
    </div>
    <${ErrorBox} error=${error} />
  </form>`;
};
