// Switches: queries that programs watch, and the throttle of work for queries with a preference.

import { get, queryString } from "../../lib/api.js";
import { Consequences, dryRun, setAttributes } from "../../lib/attributes.js";
import { usePolled } from "../../lib/polled.js";
import { readOnly } from "../../lib/session.js";
import { valued } from "../../lib/units.js";
import { Badge, Card, Confirm, ErrorBox, Field, useLoaded } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";
import { nameOf } from "./groups.js";

const AGAIN_MS = 3_000;
const SWITCH = /^\s*\/\*\s*switch:\s*([^:]+?)\s*(?::\s*(.+?)\s*)?\*\//;
const LIMIT = "preference_work_per_s_max";
/** Units of work a second, where nothing is throttled yet. */
const LIMIT_PROPOSED = 1_000;

/** The switch that a text is: its name and what it does, as its author says; or null. @param {string} sql */
const switchOf = (sql) => {
  const found = SWITCH.exec(sql);
  return found && { name: found[1], about: found[2] ?? null };
};

const readSwitches = async (signal) => {
  const { queries } = await get(`queries${queryString({ search: "switch:", offset: 0, limit: 200 })}`, { signal });
  return queries.flatMap((one) => {
    const found = switchOf(one.sql);
    return found ? [{ ...one, ...found }] : [];
  });
};

const readShards = async (signal) => {
  const page = await get(`entities${queryString({ queries: false, kind: "shard", limit: 1_000 })}`, { signal });
  return Promise.all(page.entities.filter((one) => nameOf(one.id) === "shard").map((one) => get(`entities/${one.id}`, { signal })));
};

const attributeOf = (entity, name) => entity.attributes.find((one) => one.name === name);

/** Asks with the consequences of `changes`: `[[id, values, version]]`, then makes all of them. */
const Asked = ({ title, about = null, action, changes, onDone, onClose }) => {
  const [told, error] = useLoaded((signal) => dryRun(changes[0][0], changes[0][1], signal), []);
  const go = async () => {
    for (const [id, values, version] of changes) await setAttributes(id, version === null ? values : { ...values, if_version: version });
    onDone();
  };
  return html`<${Confirm} title=${title} action=${action} onDone=${go} onClose=${onClose}>
    ${about && html`<p>${about}</p>`}
    <${ErrorBox} error=${error} />
    ${told ? html`<${Consequences} consequences=${told.consequences} />` : html`<p class="dim">Asking what it does …</p>`}
    ${changes.length > 1 ? html`<p class="dim">On each of ${changes.length} shards.</p>` : null}
  <//>`;
};

const Switch = ({ one, onDone }) => {
  const [asked, setAsked] = useState(false);
  const on = one.state === "RUNNING";
  return html`<div class="switch">
    <strong>${one.name}</strong> <${Badge} state=${on ? "warn" : ""}>${on ? "on" : "off"}<//>
    <button type="button" role="switch" aria-checked=${on} aria-label=${`Switch ${one.name}`} disabled=${readOnly.value || !["RUNNING", "PAUSED"].includes(one.state)} onClick=${() => setAsked(true)}>${on ? "Switch off" : "Switch on"}</button>
    ${one.about && html`<span class="dim">${one.about}</span>`}
    <a href=${`#/queries/${one.query_id}`}>its query</a>
    ${asked && html`<${Asked} title=${`Switch ${one.name} ${on ? "off" : "on"}`} about=${one.about ? `While it is on: ${one.about}.` : "Programs that look at the state of its query act on it."} action=${on ? "Switch off" : "Switch on"} changes=${[[`query/${one.query_id}`, { paused: on }, null]]} onDone=${onDone} onClose=${() => setAsked(false)} />`}
  </div>`;
};

const Throttle = ({ shards, onDone }) => {
  const limits = shards.map((one) => attributeOf(one, LIMIT)?.value ?? null);
  const same = limits.every((one) => one === limits[0]);
  const [typed, setTyped] = useState(null);
  const text = typed ?? String((same && limits[0]) || LIMIT_PROPOSED);
  const [asked, setAsked] = useState(null);
  const number = Number(text);
  const right = text.trim() !== "" && Number.isInteger(number) && number >= 0;
  const changes = (value) => shards.map((one) => [one.id, { [LIMIT]: value }, one.version]);
  const now = limits[0] === null ? "not throttled: what time is free" : `at most ${valued(limits[0], "units/s")} on each shard`;
  return html`<div class="switch">
    <strong>Throttle</strong> <span class="dim">of work for queries with a preference: ${same ? now : `differs by shard: ${limits.map((one) => one ?? "none").join(", ")}`}</span>
    <form class="row" onSubmit=${(event) => {
      event.preventDefault();
      if (right) setAsked({ value: number, action: "Throttle" });
    }}>
      <${Field} label="Units of work a second, each shard" error=${right ? null : "a whole number from 0"}>${(id, more) => html`<input id=${id} aria-describedby=${more} inputmode="numeric" value=${text} disabled=${readOnly.value} onInput=${(event) => setTyped(event.currentTarget.value)} />`}<//>
      <button disabled=${readOnly.value || !right}>Throttle</button>
      <button type="button" disabled=${readOnly.value || (same && limits[0] === null)} onClick=${() => setAsked({ value: null, action: "Lift" })}>Lift</button>
    </form>
    ${asked && html`<${Asked} title=${asked.value === null ? "Lift the throttle" : `Throttle to ${valued(asked.value, "units/s")}`} action=${asked.action} changes=${changes(asked.value)} onDone=${onDone} onClose=${() => setAsked(null)} />`}
  </div>`;
};

export const Switches = () => {
  const [switches, error, again] = usePolled(readSwitches, [], AGAIN_MS);
  const [shards, shardsError, shardsAgain] = usePolled(readShards, [], AGAIN_MS);
  const both = () => {
    again();
    shardsAgain();
  };
  return html`<${Card} title="Switches">
    <${ErrorBox} error=${error ?? shardsError} retry=${both} />
    <div class="switches">
      ${switches?.map((one) => html`<${Switch} key=${one.query_id} one=${one} onDone=${again} />`)}
      ${shards?.length ? html`<${Throttle} shards=${shards} onDone=${shardsAgain} />` : null}
    </div>
    ${switches && !switches.length ? html`<p class="dim">A query whose text begins with <code>/* switch: NAME: what it does */</code> is a switch here: on while it runs, off while it is paused. The demo has one for its burst.</p>` : null}
  <//>`;
};
