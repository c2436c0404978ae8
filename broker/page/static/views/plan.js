// The running plan, with data moving through it.
import { html } from "../vendor/core.js";

export const PlanView = ({ route }) => html`<h1>Plan</h1>`;
