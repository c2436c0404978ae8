// The last hour of the broker: read once, then continued from the frames of the status, so that nobody polls.
import { signal, useEffect } from "../vendor/core.js";
import { get } from "./api.js";
import { status } from "./status.js";

const POINTS_MAX = 720;
const GAP_TICKS = 6;

/** `{every_ms, at_ms, series: {name: {unit, values}}}`; null before it is read. */
export const history = signal(null);
/** Why it could not be read. */
export const historyError = signal(null);

/** What a frame says of each series, by its name in `GET /history`. @param {Record<string, any>} frame */
export const valuesOf = (frame) => {
  const found = {
    memory_bytes: frame.memory.used_bytes,
    memory_budget_bytes: frame.memory.budget_bytes,
    cpu_share: frame.cpu.share,
  };
  for (const [name, value] of Object.entries(frame.rates)) found[`${name}_per_s`] = value;
  for (const [state, value] of Object.entries(frame.queries)) found[`queries.${state}`] = value;
  for (const [name, value] of Object.entries(frame.memory.counted_bytes)) found[`memory_bytes.${name}`] = value;
  for (const [kind, value] of Object.entries(frame.cpu.by_kind ?? {})) found[`cpu_share.${kind}`] = value;
  return found;
};

/** The history with the values of a frame at its end; the same where the frame is within the last interval. null: too much is missing between the two. */
export const continued = (kept, frame) => {
  const tick = Math.floor(frame.at_ms / kept.every_ms) * kept.every_ms;
  const last = kept.at_ms.at(-1) ?? tick - kept.every_ms;
  if (tick <= last && tick > last - 2 * kept.every_ms) return kept;
  const missing = (tick - last) / kept.every_ms - 1;
  if (missing < 0 || missing > GAP_TICKS) return null;
  const added = Array.from({ length: missing + 1 }, (_, place) => last + (place + 1) * kept.every_ms);
  const values = valuesOf(frame);
  const series = {};
  for (const [name, one] of Object.entries(kept.series)) {
    const more = added.map((at) => (at === tick ? (values[name] ?? null) : null));
    series[name] = { unit: one.unit, values: [...one.values, ...more].slice(-POINTS_MAX) };
  }
  return { every_ms: kept.every_ms, at_ms: [...kept.at_ms, ...added].slice(-POINTS_MAX), series };
};

let reading = false;
let instance = null;

const read = async () => {
  if (reading) return;
  reading = true;
  try {
    history.value = await get("history");
    historyError.value = null;
  } catch (error) {
    historyError.value = error;
  } finally {
    reading = false;
  }
};

const follow = (frame) => {
  if (!frame) return;
  const kept = instance === frame.instance ? history.value : null;
  instance = frame.instance;
  const now = kept && continued(kept, frame);
  if (now) history.value = now;
  else read();
};

/** Keep `history` up to date while the component is shown. */
export const useHistory = () => useEffect(() => status.subscribe(follow), []);
