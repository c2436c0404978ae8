// What an answer was at an earlier instant, and what came and went between two.

import { get, queryString } from "../../lib/api.js";
import { Remarks } from "../../lib/remarks.js";
import { count, duration, instant } from "../../lib/units.js";
import { Card, Empty, ErrorBox, Field, Instant, useLoaded } from "../../lib/widgets.js";
import { html, useEffect, useMemo, useState } from "../../vendor/core.js";
import { queryPath } from "./access.js";
import { SHOWN_MAX } from "./live.js";
import { AnswerTable } from "./table.js";
import { isNumber, Value } from "./values.js";

const YEARS_19_MS = 19 * 365 * 86_400_000;
const SPANS = [60_000, 600_000, 3_600_000, 86_400_000, Number.POSITIVE_INFINITY];
const STEPS = [100, 1_000, 5_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000];
const SETTLE_MS = 150;

/** Which instants can be asked for: `{now_ms, earliest_ms}`, earliest_ms null where nothing bounds it. */
const reach = async (id, handle, sources, signal) => {
  const { now_ms } = await get(queryPath(id, "/snapshot?limit=0"), { handle, signal });
  if (now_ms === null) return { now_ms, earliest_ms: null };
  const bounds = await Promise.allSettled(sources.map((name) => get(`sources/${encodeURIComponent(name)}`, { signal })));
  const retained = bounds
    .map((one) => (one.status === "fulfilled" ? one.value.retained_from_ms : null))
    .filter((ms) => typeof ms === "number");
  try {
    await get(queryPath(id, `/snapshot${queryString({ limit: 0, at: now_ms - YEARS_19_MS, archive: false })}`), { handle, signal });
  } catch (refused) {
    if (refused.code !== "instant_out_of_range") throw refused;
    const { earliest_ms } = refused.told.facts ?? {};
    if (typeof earliest_ms === "number") return { now_ms, earliest_ms };
  }
  return { now_ms, earliest_ms: retained.length ? Math.min(now_ms, Math.max(...retained)) : null };
};

const rowsOf = (list) => list.map((values, serial) => ({ serial, values, came: 0, went: 0 }));

const Rows = ({ columns, list, total, label }) => {
  const rows = useMemo(() => rowsOf(list), [list]);
  return html`<${AnswerTable} columns=${columns} rows=${rows} total=${total} label=${label} marks=${false} />`;
};

/** The answer at an instant. */
const Then = ({ id, handle, at }) => {
  const [answer, error] = useLoaded(
    (signal) => get(queryPath(id, `/snapshot${queryString({ at, limit: SHOWN_MAX })}`), { handle, signal }),
    [id, handle, at],
  );
  const isOld = answer && answer.now_ms !== at;
  return html`<${Card} title=${`Answer at ${instant(at)} UTC`}>
    <${ErrorBox} error=${error} />
    ${
      answer &&
      !error &&
      html`<div class=${isOld ? "query-stale" : ""} aria-busy=${isOld}>
        <${Remarks} of=${{ catching_up: answer.catching_up }} />
        ${answer.complete_from_ms !== null && html`<p class="warn">Complete only from <${Instant} ms=${answer.complete_from_ms} /> UTC on: older rows are gone.</p>`}
        ${answer.archive && html`<p class="dim">${count(answer.archive.rows)} rows of it are from the archive.</p>`}
        <${Rows} columns=${answer.columns} list=${answer.rows} total=${answer.rows_total} label="Rows of the answer then" />
      </div>`
    }
  <//>`;
};

/** What came and went between two instants. */
const Between = ({ id, handle, from, to }) => {
  const path = queryPath(id, `/difference${queryString({ from, to, limit: SHOWN_MAX })}`);
  const [found, error] = useLoaded((signal) => get(path, { handle, signal }), [path, handle]);
  if (error) return html`<${ErrorBox} error=${error} />`;
  if (!found) return html`<p class="dim">…</p>`;
  return html`
    <${Remarks} of=${found} />
    ${found.complete_from_ms !== null && html`<p class="warn">One of the answers is complete only from <${Instant} ms=${found.complete_from_ms} /> UTC on.</p>`}
    <div class="grid wide" aria-busy=${found.from_ms !== from || found.to_ms !== to}>
      <${Card} title=${`Came: ${count(found.added_total)}`} level=${3}><${Rows} columns=${found.columns} list=${found.added} total=${found.added_total} label="Rows that came" /><//>
      <${Card} title=${`Went: ${count(found.removed_total)}`} level=${3}><${Rows} columns=${found.columns} list=${found.removed} total=${found.removed_total} label="Rows that went" /><//>
    </div>`;
};

/** Each row that is there at an instant of a period, with a bar from when to when. */
const Lives = ({ id, handle, from, to }) => {
  const path = queryPath(id, `/snapshot${queryString({ from, to: to + 1, limit: SHOWN_MAX })}`);
  const [found, error] = useLoaded((signal) => get(path, { handle, signal }), [path, handle]);
  if (error) return html`<${ErrorBox} error=${error} />`;
  if (!found) return html`<p class="dim">…</p>`;
  const width = to + 1 - from;
  const percent = (ms) => Math.max(0, Math.min(100, (100 * (ms - from)) / width));
  const lifeOf = (values) => values.slice(-2).map((text) => Date.parse(text));
  return html`
    <${Remarks} of=${found} />
    <p class="dim">${found.rows.length < found.rows_total ? `first ${count(found.rows.length)} of ` : ""}${count(found.rows_total)} ${found.rows_total === 1 ? "row" : "rows"}, each with the time in which it is in the answer</p>
    <div class="scroll query-answer" tabindex="0" role="region" aria-label="Rows over the period">
      <table>
        <thead><tr><th scope="col" class="query-life">${instant(from)} – ${instant(to)}</th>${found.columns.slice(0, -2).map(({ name, type }) => html`<th scope="col">${name}<span class="type">${type.toLowerCase()}</span></th>`)}</tr></thead>
        <tbody>${found.rows.map((values, place) => {
          const [came, left] = lifeOf(values);
          const told = `${came > from ? `from ${instant(came)}` : "from before"} ${left <= to ? `to ${instant(left)}` : "on"}`;
          return html`<tr key=${place}>
            <td class="query-life"><svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${told}><title>${told}</title><rect x=${percent(came)} y="2" width=${Math.max(0.5, percent(left) - percent(came))} height="6" /></svg></td>
            ${found.columns.slice(0, -2).map(({ type }, column) => html`<td class=${isNumber(type) ? "number" : ""}><${Value} value=${values[column]} type=${type} /></td>`)}
          </tr>`;
        })}</tbody>
      </table>
    </div>`;
};

const localText = (ms) => new Date(ms).toISOString().slice(0, 23);

/** sources: of the query. onLive: back to the answer of now. */
export const History = ({ id, handle, sources, onLive }) => {
  const [range, error, again] = useLoaded((signal) => reach(id, handle, sources, signal), [id, handle, sources.join()]);
  const [span, setSpan] = useState(3_600_000);
  const [ownStep, setStep] = useState(null);
  const [at, setAt] = useState(null);
  const [settled, setSettled] = useState(null);
  const [against, setAgainst] = useState("nothing");
  const [pinned, setPinned] = useState(null);
  const now = range?.now_ms ?? null;
  useEffect(() => {
    if (now !== null) setAt((was) => was ?? now);
  }, [now]);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(at), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [at]);
  if (error && !range) return html`<${ErrorBox} error=${error} retry=${again} />`;
  if (!range || (now !== null && at === null)) return html`<p class="dim">Asking which instants can be reached …</p>`;
  if (now === null) return html`<${Empty}>The query's sources have no row yet, so there is no past.<//>`;
  const lowest = range.earliest_ms ?? now - 86_400_000;
  const low = Math.min(at, Math.max(lowest, Number.isFinite(span) ? now - span : lowest));
  const step = ownStep ?? STEPS.find((one) => one >= (now - low) / 500) ?? STEPS.at(-1);
  const move = (by) => setAt((was) => Math.max(lowest, Math.min(now, was + by)));
  const other = { earlier: settled - step, newest: now, pinned }[against] ?? null;
  const [from, to] = other === null ? [null, null] : [Math.min(settled, other), Math.max(settled, other)];
  return html`
    <${Card} title="Instant" tools=${html`<button type="button" class="small" onClick=${again} title="Ask again how far NOW has come">Newest instant again</button><button type="button" class="small" onClick=${onLive}>Back to live</button>`}>
      <div class="query-slider">
        <button type="button" aria-label="One step earlier" disabled=${at <= lowest} onClick=${() => move(-step)}>◀</button>
        <input type="range" aria-label="Instant of the answer" aria-valuetext=${`${instant(at)} UTC`} min=${low} max=${now} step=${1} value=${at}
          onInput=${(event) => setAt(Number(event.currentTarget.value))}
          onKeyDown=${(event) => {
            const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
            if (by === undefined) return;
            event.preventDefault();
            move(by * step);
          }} />
        <button type="button" aria-label="One step later" disabled=${at >= now} onClick=${() => move(step)}>▶</button>
      </div>
      <div class="row between dim"><${Instant} ms=${low} /><strong class="query-at">${instant(at)} UTC<span class="dim"> (${at === now ? "the newest" : `${duration(now - at)} earlier`})</span></strong><${Instant} ms=${now} /></div>
      <div class="row">
        <${Field} label="Reach of the slider">${(input) => html`<select id=${input} value=${String(span)} onChange=${(event) => setSpan(Number(event.currentTarget.value))}>${SPANS.map((one) => html`<option key=${one} value=${String(one)}>${Number.isFinite(one) ? `the last ${duration(one)}` : `all: from ${instant(lowest)}`}</option>`)}</select>`}<//>
        <${Field} label="Step">${(input) => html`<select id=${input} value=${String(step)} onChange=${(event) => setStep(Number(event.currentTarget.value))}>${STEPS.map((one) => html`<option key=${one} value=${String(one)}>${duration(one)}</option>`)}</select>`}<//>
        <${Field} label="Instant (UTC)">${(input) =>
          html`<input id=${input} type="datetime-local" step="0.001" value=${localText(at)} onChange=${(event) => {
            const given = Date.parse(`${event.currentTarget.value}Z`);
            if (!Number.isNaN(given)) setAt(given);
          }} />`}<//>
        <${Field} label="Compare with">${(input) => html`<select id=${input} value=${against} onChange=${(event) => {
          if (event.currentTarget.value === "pinned" && pinned === null) setPinned(at);
          setAgainst(event.currentTarget.value);
        }}>
          <option value="nothing">nothing</option><option value="earlier">one step earlier</option><option value="newest">the newest</option><option value="pinned">${pinned === null ? "this instant, from here on" : `${instant(pinned)} UTC`}</option>
        </select>`}<//>
        ${against === "pinned" && html`<button type="button" onClick=${() => setPinned(at)}>Compare with ${instant(at)} from here on</button>`}
      </div>
      ${range.earliest_ms !== null && html`<p class="dim">Rows are kept from <${Instant} ms=${range.earliest_ms} /> UTC on. Answers are of the rows as they are known now.</p>`}
    <//>
    ${
      settled !== null &&
      from !== null &&
      html`<${Card} title=${`Between ${instant(from)} and ${instant(to)} UTC`}><${Between} id=${id} handle=${handle} from=${from} to=${to} /><//>
      <${Card} title="When each row is there"><${Lives} id=${id} handle=${handle} from=${from} to=${to} /><//>`
    }
    ${settled !== null && html`<${Then} id=${id} handle=${handle} at=${settled} />`}`;
};
