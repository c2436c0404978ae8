// The last hour of a source, kept by the broker; only what is new is asked for.

import { get, queryString } from "../../lib/api.js";
import { Curve } from "../../lib/curve.js";
import { usePolled } from "../../lib/polled.js";
import { html, useRef } from "../../vendor/core.js";

const EVERY_MS = 5_000;
const HOUR_MS = 3_600_000;
const NOTHING = { at_ms: [], series: {} };

/** `before` with what came after it, no older than an hour. */
const joined = (before, found) => {
  const begin = (found.at_ms.at(-1) ?? before.at_ms.at(-1) ?? 0) - HOUR_MS;
  const kept = before.at_ms.filter((ms) => ms >= begin && ms < (found.at_ms[0] ?? Infinity)).length;
  const first = before.at_ms.findIndex((ms) => ms >= begin);
  const from = first < 0 ? before.at_ms.length : first;
  const at_ms = [...before.at_ms.slice(from, from + kept), ...found.at_ms];
  const series = {};
  for (const [name, one] of Object.entries(found.series)) {
    const old = before.series[name]?.values.slice(from, from + kept) ?? new Array(kept).fill(null);
    series[name] = { ...one, values: [...old, ...one.values] };
  }
  return { at_ms, series };
};

/**
 * `[{at_ms, series}, error]` of a source, as `GET /history?source=` has it.
 * @param {string} name
 * @param {boolean} kept whether it is a stream or a table: views have none
 * @returns {[{at_ms: number[], series: Record<string, {unit: string, values: (number|null)[]}>}, any]}
 */
export const useHistory = (name, kept) => {
  const known = useRef(NOTHING);
  const [, error] = usePolled(
    async (signal) => {
      if (!kept) return 0;
      const since_ms = known.current.at_ms.at(-1) ?? null;
      known.current = joined(known.current, await get(`history${queryString({ source: name, since_ms })}`, { signal }));
      return known.current.at_ms.length;
    },
    [name, kept],
    EVERY_MS,
  );
  return [known.current, error];
};

/** A small curve of one series below its number. */
export const Spark = ({ history, of, label }) => {
  const one = history.series[of];
  if (!one || history.at_ms.length < 2) return null;
  return html`<${Curve} bare height=${34} at=${history.at_ms} series=${[{ name: label, values: one.values }]} unit=${one.unit} label=${`${label}, the last hour`} />`;
};
