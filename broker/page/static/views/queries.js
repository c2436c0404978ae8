// All standing queries.
import { html } from "../vendor/core.js";

export const QueriesView = ({ route }) => html`<h1>Queries</h1>`;
