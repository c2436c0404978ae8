// How sources are told of: names in addresses, and how far NOW is from the clock.
import { duration } from "../../lib/units.js";

/** @param {string} name */
export const sourceHref = (name) => `#/sources/${encodeURIComponent(name)}`;
/** The queries that read a source. @param {string} name */
export const queriesHref = (name) => `#/queries?source=${encodeURIComponent(name)}`;
/** The way of one record. @param {string} name @param {number} partition @param {number} offset */
export const traceHref = (name, partition, offset) => `#/plan?trace=${encodeURIComponent(`${name}:${partition}:${offset}`)}`;
/** @param {string} name */
export const sourcePath = (name) => `sources/${encodeURIComponent(name)}`;

const NEAR_MS = 2_000;

/**
 * How far an instant is from the broker's clock, in words; event time may be years behind it.
 * @param {number|null} ms @param {number} clock_ms
 */
export const distance = (ms, clock_ms) => {
  if (ms === null || ms === undefined) return "";
  const behind = clock_ms - ms;
  if (Math.abs(behind) <= NEAR_MS) return "at the broker's clock";
  return behind > 0 ? `${duration(behind)} behind the broker's clock` : `${duration(-behind)} ahead of the broker's clock`;
};
