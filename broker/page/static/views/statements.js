// An editor for statements.
import { html } from "../vendor/core.js";

export const StatementsView = ({ route }) => html`<h1>Statements</h1>`;
