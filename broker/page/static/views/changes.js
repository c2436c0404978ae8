// What can be changed while it runs.
import { html } from "../vendor/core.js";

export const ChangesView = ({ route }) => html`<h1>Changes</h1>`;
