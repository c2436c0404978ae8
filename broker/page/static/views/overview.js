// Is it well, and what is it doing.
import { html } from "../vendor/core.js";

export const OverviewView = ({ route }) => html`<h1>Overview</h1>`;
