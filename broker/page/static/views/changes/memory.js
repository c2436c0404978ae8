// Memory: what it is spent on beside its budget, and bytes moved from one synopsis to another.

import { entityPath, get, post } from "../../lib/api.js";
import { AttributesDialog, Consequences } from "../../lib/attributes.js";
import { usePolled } from "../../lib/polled.js";
import { handleOf, readOnly } from "../../lib/session.js";
import { bytes, count, share, valued } from "../../lib/units.js";
import { Badge, Bar, Card, Empty, ErrorBox, Field } from "../../lib/widgets.js";
import { html, useEffect, useState } from "../../vendor/core.js";
import { Divider } from "./divider.js";

const AGAIN_MS = 5_000;
const DRY_RUN_AFTER_MS = 300;
const LEVELS = { normal: "good", refuse: "warn", hold: "bad", shed: "bad" };
const SHOWN = 12;

const keyOf = (size) => `${size.entity} ${size.attribute}`;
const ID_SHOWN = 8;

/** As people read it: which window of which query, which join. */
const titleOf = ({ entity, attribute }) =>
  entity.startsWith("query/")
    ? `window over ${attribute.replace("window_ms.", "")} of query ${entity.slice(6, 6 + ID_SHOWN)}…`
    : `combinations of ${entity.replace(/^\d+\//, "")}`;

/** The size that memory is given to at first: one that has less than it asks for. */
const roomy = (sizes) => sizes.slice(1).find((one) => one.unit === "ms" && one.value < one.high) ?? sizes[1];

const Budget = ({ memory }) => {
  const parts = Object.entries({ ...memory.counted_bytes, uncounted: memory.uncounted_bytes })
    .filter(([, value]) => value > 0)
    .sort((one, other) => other[1] - one[1]);
  const { budget_bytes: budget, used_bytes: used } = memory;
  return html`<div class="budget">
    <p>${bytes(used)} of ${bytes(budget)} are used, ${share(used / budget)} <${Badge} state=${LEVELS[memory.level]}>${memory.level}<//></p>
    <div class="memory-stack" role="img" aria-label=${`Memory: ${bytes(used)} of ${bytes(budget)}; ${parts.map(([name, value]) => `${name} ${bytes(value)}`).join(", ")}`}>
      ${parts.map(([name, value], place) => html`<span key=${name} class=${`part-${place % 6}`} title=${`${name}: ${bytes(value)}`} style=${{ width: `${(100 * value) / Math.max(budget, used)}%` }}></span>`)}
    </div>
    <ul class="legend">${parts.map(([name, value], place) => html`<li key=${name}><span class=${`dot part-${place % 6}`}></span>${name.replaceAll("_", " ")} <span class="dim">${bytes(value)}</span></li>`)}</ul>
    ${memory.spilled_bytes ? html`<p>${bytes(memory.spilled_bytes)} of rows are on disk; ${bytes(memory.spilled_resident_bytes)} of them are in memory too, for as long as the system has room. Since the start threads waited ${count(memory.disk_waits)} times for a page from disk.</p>` : null}
    ${memory.spilled_refused ? html`<p class="bad">Rows stay in memory: ${memory.spilled_refused.message}. ${memory.spilled_refused.hint}</p>` : null}
  </div>`;
};

const Synopses = ({ memory }) => {
  const [all, setAll] = useState(false);
  const [open, setOpen] = useState(null);
  const most = memory.synopses[0]?.bytes ?? 1;
  const shown = all ? memory.synopses : memory.synopses.slice(0, SHOWN);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Synopses by size">
      <table>
        <caption>${bytes(memory.synopses_bytes)} in ${count(memory.synopses_total)} synopses, operators and queues</caption>
        <thead><tr><th scope="col">Entity</th><th scope="col">Kind</th><th scope="col" class="number">Queries</th><th scope="col" class="number">Bytes</th><th scope="col"><span class="visually-hidden">Bar</span></th></tr></thead>
        <tbody>${shown.map(
          (one) => html`<tr key=${one.id}>
            <td><button type="button" class="plain small" onClick=${() => setOpen(one.id)}><code>${one.id}</code></button></td>
            <td>${one.kind}</td><td class="number">${count(one.queries)}</td><td class="number">${bytes(one.bytes)}</td>
            <td class="bars"><${Bar} value=${one.bytes / most} label=${`${share(one.bytes / most)} of the largest`} /></td>
          </tr>`,
        )}</tbody>
      </table>
    </div>
    ${memory.synopses.length > SHOWN ? html`<button type="button" class="small" onClick=${() => setAll(!all)}>${all ? "The largest alone" : `All ${count(memory.synopses.length)}`}</button>` : null}
    ${open && html`<${AttributesDialog} id=${open} onClose=${() => setOpen(null)} />`}`;
};

const Choice = ({ label, sizes, chosen, onChoose }) => html`
  <${Field} label=${label}>${(id) => html`<select id=${id} value=${chosen} onChange=${(event) => onChoose(event.currentTarget.value)}>
    ${sizes.map((one) => html`<option key=${keyOf(one)} value=${keyOf(one)}>${titleOf(one)}, ${bytes(one.bytes)}</option>`)}
  </select>`}<//>`;

/** A window's length, or a count of combinations, before and after. */
const Moved = ({ end }) =>
  html`<p><code>${end.attribute}</code> of <code>${end.entity}</code>: ${valued(end.from, end.unit)} → <strong>${valued(end.to, end.unit)}</strong>, ${end.bytes < 0 ? "frees" : "takes"} about ${bytes(Math.abs(end.bytes))}</p>`;

const handleFor = (entity) => (entity.startsWith("query/") ? handleOf(entity.slice("query/".length)) : null);

/** One end as the API takes it, of the version that was seen. */
const endOf = async (size) => {
  const handle = handleFor(size.entity);
  const { version } = await get(entityPath(size.entity), { handle });
  return { entity: handle ? `query/${handle}` : size.entity, attribute: size.attribute, if_version: version };
};

const Move = ({ sizes, again }) => {
  const [from, setFrom] = useState(keyOf(sizes[0]));
  const [to, setTo] = useState(keyOf(roomy(sizes)));
  const [amount, setAmount] = useState(0);
  const [text, setText] = useState("0");
  const [told, setTold] = useState(null);
  const [refused, setRefused] = useState(null);
  const [done, setDone] = useState(null);
  const find = (key, fallback) => sizes.find((one) => keyOf(one) === key) ?? fallback;
  const source = find(from, sizes[0]);
  const target = find(to, sizes[1]);
  const most = source.bytes - Math.max(0, source.bytes_low ?? 0);

  const give = (value) => {
    const whole = Math.max(0, Math.min(Math.round(value), most));
    setAmount(whole);
    setText(String(whole));
    setDone(null);
  };
  const typed = (value) => {
    setText(value);
    setDone(null);
    const number = Number(value.replaceAll(",", ""));
    if (Number.isInteger(number) && number >= 0) setAmount(number);
  };
  const swap = (chosen, choose) => {
    choose(chosen);
    give(0);
    setTold(null);
    setRefused(null);
  };

  useEffect(() => {
    setTold(null);
    setRefused(null);
    if (!amount) return;
    let left = false;
    const timer = setTimeout(async () => {
      try {
        const ends = await Promise.all([endOf(source), endOf(target)]);
        const found = await post("memory/moves?dry_run=true", { from: ends[0], to: ends[1], bytes: amount });
        if (!left) setTold({ ...found, ends });
      } catch (error) {
        if (!left) setRefused(error);
      }
    }, DRY_RUN_AFTER_MS);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [from, to, amount]);

  const apply = async (event) => {
    event.preventDefault();
    if (!told) return;
    try {
      setDone(await post("memory/moves", { from: told.ends[0], to: told.ends[1], bytes: amount }));
      setTold(null);
      setText("0");
      setAmount(0);
    } catch (error) {
      setRefused(error);
      setTold(null);
    }
    again();
  };

  return html`<form class="move" aria-label="Move memory" onSubmit=${apply}>
    <div class="ends">
      <${Choice} label="Take from" sizes=${sizes} chosen=${keyOf(source)} onChoose=${(key) => swap(key, setFrom)} />
      <${Choice} label="Give to" sizes=${sizes} chosen=${keyOf(target)} onChoose=${(key) => swap(key, setTo)} />
    </div>
    <${Divider} left=${source} right=${target} amount=${amount} most=${most} onAmount=${give} locked=${readOnly.value} />
    <div class="row">
      <${Field} label="Bytes to move" hint=${`${bytes(amount)} of at most ${bytes(most)}`}>${(id, more) => html`<input id=${id} aria-describedby=${more} inputmode="numeric" value=${text} disabled=${readOnly.value} onInput=${(event) => typed(event.currentTarget.value)} />`}<//>
      <button class="main" disabled=${!told || readOnly.value} aria-describedby="move-why">Move</button>
    </div>
    <p class="dim" id="move-why">${why({ readOnly: readOnly.value, most, amount, source, target, refused, told })}</p>
    <div aria-live="polite">
      <${ErrorBox} error=${refused} />
      ${told && html`<${Moved} end=${told.from} /><${Moved} end=${told.to} /><${Consequences} consequences=${told.consequences} />`}
      ${done && html`<p class="good">It is moved.</p><${Moved} end=${done.from} /><${Moved} end=${done.to} />`}
    </div>
  </form>`;
};

/** Why Move cannot be pressed; nothing where it can. */
const why = ({ readOnly, most, amount, source, target, refused, told }) => {
  if (readOnly) return "This page only looks: press Read only to edit, if your token may.";
  if (keyOf(source) === keyOf(target)) return "Choose two different sizes: what is taken from one is given to the other.";
  if (most <= 0)
    return "Nothing can be moved between these two: the first has no memory for itself alone that it may give up, or the other has no room.";
  if (!amount) return "Say how many bytes, or draw the divider.";
  if (amount > most) return `At most ${bytes(most)} can be moved between these two.`;
  return refused ? "The broker refuses it, for the reason below." : told ? "" : "The broker is asked what that would do …";
};

export const MemoryPanel = () => {
  const [memory, error, again] = usePolled((signal) => get("memory", { signal }), [], AGAIN_MS);
  if (!memory)
    return html`<${Card} title="Memory"><${ErrorBox} error=${error} retry=${again} />${error ? null : html`<p class="dim">…</p>`}<//>`;
  return html`<${Card} title="Memory" class="memory">
    <${ErrorBox} error=${error} retry=${again} />
    <${Budget} memory=${memory} />
    <h3>Move memory from one to another</h3>
    ${
      memory.sizes.length > 1
        ? html`<${Move} sizes=${memory.sizes} again=${again} />
          ${memory.sizes_total > memory.sizes.length || memory.queries_passed_over ? html`<p class="dim">The ${count(memory.sizes.length)} largest of ${count(memory.sizes_total)} sizes${memory.queries_passed_over ? `; ${count(memory.queries_passed_over)} queries were not looked at` : ""}.</p>` : null}`
        : html`<${Empty}>Memory can be moved between windows of queries that tolerate less (DOWN TO, max_fn, max_error) and combinations of joins; ${memory.sizes.length === 1 ? "there is one such size" : "there is none"} here.<//>`
    }
    <h3>By synopsis</h3>
    <${Synopses} memory=${memory} />
  <//>`;
};
