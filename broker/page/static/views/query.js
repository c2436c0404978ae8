// One query: its answer, its past, what can be done with it.
import { html } from "../vendor/core.js";

export const QueryView = ({ route }) => html`<h1>Query</h1>`;
