// Streams, tables and views.
import { html } from "../vendor/core.js";

export const SourcesView = ({ route }) => html`<h1>Sources</h1>`;
