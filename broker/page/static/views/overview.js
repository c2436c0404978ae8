// Is it well, and what is it doing.

import { historyError, useHistory } from "../lib/history.js";
import { status } from "../lib/status.js";
import { duration } from "../lib/units.js";
import { ErrorBox } from "../lib/widgets.js";
import { html } from "../vendor/core.js";
import { Figures } from "./overview/figures.js";
import { Health } from "./overview/health.js";
import { Shards } from "./overview/shards.js";
import { Sources } from "./overview/sources.js";
import { Users } from "./overview/users.js";

/** `#/`. */
export const OverviewView = () => {
  useHistory();
  const now = status.value;
  if (!now) return html`<h1>Overview</h1><p class="loading">Waiting for the broker …</p>`;
  return html`
    <div class="heading">
      <h1>Overview</h1>
      <span class="dim">Tureen ${now.version}, up for ${duration(Math.round(now.uptime_s) * 1_000)}</span>
    </div>
    <${Health} now=${now} />
    <${ErrorBox} error=${historyError.value} />
    <${Figures} now=${now} />
    <${Sources} now=${now} />
    <div class="grid wide">
      <${Users} />
      <${Shards} now=${now} />
    </div>`;
};
