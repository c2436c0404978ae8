// The partitions of a source on one axis of time: who holds NOW back, who is idle, who is behind.

import { post } from "../../lib/api.js";
import { readOnly } from "../../lib/session.js";
import { count, duration, instant } from "../../lib/units.js";
import { Badge, Card, Confirm, Empty, Field, Instant } from "../../lib/widgets.js";
import { html, useState } from "../../vendor/core.js";
import { sourcePath } from "./words.js";

const marks = (one) => [one.watermark_ms, one.latest_ms].filter((ms) => ms !== null);

/** The later of two instants, without its date where it is that of the earlier. */
const after = (from, until) => (instant(from).slice(0, 10) === instant(until).slice(0, 10) ? instant(until).slice(11) : instant(until));

/** What of a partition is to be seen first. */
const stateOf = (one) => {
  if (one.idle_since_ms !== null) return ["idle", "dim", "It is idle: NOW does not wait for it."];
  if (one.watermark_ms === null)
    return one.unread
      ? ["unread", "warn", "Nothing of it was read yet."]
      : ["empty", "dim", "It has had no record: NOW does not wait for it."];
  if (one.holds_back_ms > 0) return ["holds NOW", "warn", `Without it NOW could be ${duration(one.holds_back_ms)} later.`];
  if (one.lagging) return ["behind", "warn", "It has unread records."];
  return ["on time", "good", ""];
};

/** A partition's watermark and latest timestamp between the earliest and the latest of all. */
const Span = ({ one, from, until, now_ms }) => {
  const place = (ms) => `${until > from ? (100 * (ms - from)) / (until - from) : 50}%`;
  const known = one.watermark_ms !== null;
  const text = known ? `watermark ${instant(one.watermark_ms)}, latest ${instant(one.latest_ms)} UTC` : "no watermark";
  return html`<svg class="span" width="100%" height="18" role="img" aria-label=${text}>
    <title>${text}</title>
    <line class="axis" x1="0" x2="100%" y1="9" y2="9" />
    ${known && one.latest_ms !== null && html`<line class="reach" x1=${place(one.watermark_ms)} x2=${place(one.latest_ms)} y1="9" y2="9" />`}
    ${one.latest_ms !== null && html`<circle class="latest" cx=${place(one.latest_ms)} cy="9" r="3" />`}
    ${known && html`<circle class="mark" cx=${place(one.watermark_ms)} cy="9" r="5" />`}
    ${now_ms !== null && now_ms >= from && now_ms <= until && html`<line class="now" x1=${place(now_ms)} x2=${place(now_ms)} y1="0" y2="18" />`}
  </svg>`;
};

/** Asks for the instant of a heartbeat. partition: null for all. */
const HeartbeatDialog = ({ source, partition, onClose, onSent }) => {
  const latest = Math.max(...source.partitions.flatMap(marks), source.now_ms ?? -Infinity);
  const [text, setText] = useState(Number.isFinite(latest) ? new Date(latest).toISOString() : "");
  const ms = /^-?\d+$/.test(text.trim()) ? Number(text.trim()) : Date.parse(text);
  const whose = partition === null ? "any partition" : `partition ${partition}`;
  const send = async () => {
    if (Number.isNaN(ms))
      throw Object.assign(new Error("this is no instant"), { code: "bad_request", hint: "2025-06-01T12:00:00Z, or ms since 1970" });
    onSent(await post(`${sourcePath(source.name)}/heartbeat`, { partition, ms }));
  };
  return html`<${Confirm} title="Heartbeat" action="Promise it" onDone=${send} onClose=${onClose}>
    <p>You promise that no row of ${whose} of <strong>${source.name}</strong> below this instant follows. NOW goes on as far as that allows, rows enter answers and leave windows; a row below it that comes all the same is late.</p>
    <${Field} label="Instant (UTC, or ms since 1970)" hint=${Number.isNaN(ms) ? "" : `${instant(ms)} UTC`}>${(id, more) => html`<input id=${id} aria-describedby=${more} value=${text} onInput=${(event) => setText(event.currentTarget.value)} />`}<//>
  <//>`;
};

const PartitionRow = ({ one, from, until, now_ms, onBeat }) => {
  const [word, state, title] = stateOf(one);
  return html`<tr class=${one.holds_back_ms > 0 ? "holds" : one.idle_since_ms !== null ? "idle" : ""}>
    <th scope="row" class="number">${one.partition}</th>
    <td><${Badge} state=${state} title=${title}>${word}<//>${one.holds_back_ms > 0 && html` <span class="warn">by ${duration(one.holds_back_ms)}</span>`}
      ${one.idle_since_ms !== null && html`<div class="note">since <${Instant} ms=${one.idle_since_ms} /></div>`}</td>
    <td class="wide"><${Span} one=${one} from=${from} until=${until} now_ms=${now_ms} /></td>
    <td><${Instant} ms=${one.watermark_ms} /></td>
    <td><${Instant} ms=${one.latest_ms} />${one.promised_ms !== null && html`<div class="note">promised <${Instant} ms=${one.promised_ms} /></div>`}</td>
    <td class="number" title="read to, of the end in Kafka">${count(one.next_offset ?? 0)} of ${count(one.end_offset)}</td>
    <td class="number">${one.unread ? html`<span class="warn">${count(one.unread)}</span>` : count(one.unread)}</td>
    ${onBeat && html`<td><button type="button" class="small" aria-label=${`Heartbeat for partition ${one.partition}`} onClick=${() => onBeat(one.partition)}>Heartbeat</button></td>`}
  </tr>`;
};

/** source: of `GET /sources/{name}`. onChanged: a heartbeat was sent. */
export const Partitions = ({ source, onChanged }) => {
  const [asked, setAsked] = useState(undefined);
  const [told, setTold] = useState(null);
  const { partitions, now_ms, time_rules: rules } = source;
  const all = [...partitions.flatMap(marks), ...(now_ms === null ? [] : [now_ms])];
  const [from, until] = all.length ? [Math.min(...all), Math.max(...all)] : [0, 0];
  const beats = rules?.timestamp && !readOnly.value;
  const holding = partitions.filter((one) => one.holds_back_ms > 0);
  const idle = partitions.filter((one) => one.idle_since_ms !== null).length;
  const sent = (answer) => {
    setTold(
      answer.raised.length
        ? `Promised for partition ${answer.raised.join(", ")}; NOW is ${instant(answer.now_ms)} UTC.`
        : "No effect: NOW was past it already.",
    );
    onChanged();
  };
  return html`<${Card} title="Partitions" tools=${beats && html`<button type="button" class="small" onClick=${() => setAsked(null)}>Heartbeat for all</button>`}>
    ${source.kafka_error && html`<p class="warn">Offsets of Kafka are not known: ${source.kafka_error.message}</p>`}
    ${holding.map((one) => html`<p class="warn" key=${one.partition}>Partition ${one.partition} holds NOW back: without it NOW could be ${duration(one.holds_back_ms)} later.</p>`)}
    ${idle > 0 && html`<p class="dim">${idle} of ${partitions.length} are idle: they had no record for ${duration(rules.idle_timeout_ms)}, and NOW does not wait for them.</p>`}
    ${told && html`<p role="status">${told}</p>`}
    ${
      partitions.length
        ? html`<div class="scroll" tabindex="0" role="region" aria-label="Table of partitions"><table class="partitions">
            <thead><tr>
              <th scope="col" class="number">Partition</th><th scope="col">State</th>
              <th scope="col" class="wide"><span class="ends"><span>${instant(from)}</span><span>${until > from ? after(from, until) : ""}</span></span></th>
              <th scope="col">Watermark (UTC)</th><th scope="col">Latest (UTC)</th><th scope="col" class="number">Read, offset</th><th scope="col" class="number">Unread</th>
              ${beats && html`<th scope="col"><span class="visually-hidden">Heartbeat</span></th>`}
            </tr></thead>
            <tbody>${partitions.map((one) => html`<${PartitionRow} key=${one.partition} one=${one} from=${from} until=${until} now_ms=${now_ms} onBeat=${beats && setAsked} />`)}</tbody>
          </table></div>
          <p class="dim marks"><span class="key mark"></span> watermark <span class="key latest"></span> latest timestamp <span class="key now"></span> NOW</p>`
        : html`<${Empty}>No partition is known yet.<//>`
    }
    ${asked !== undefined && html`<${HeartbeatDialog} source=${source} partition=${asked} onClose=${() => setAsked(undefined)} onSent=${sent} />`}
  <//>`;
};
