// The entities that are no query, with what moved in the last second, while anybody looks.
import { signal, useEffect } from "../vendor/core.js";
import { get, queryString } from "./api.js";
import { openStream } from "./stream.js";

const PAGE = 2_000;

/** By id: `{id, kind, shard, reads, statistics, moved}`; moved: what the last frame said, per second. Replaced at each frame. */
export const entities = signal(new Map());
/** When the last frame was made, ms since 1970; 0: none yet. */
export const movedAt = signal(0);
/** Why there are none. */
export const entitiesError = signal(null);

let listeners = 0;
let close = () => {};

const readAll = async () => {
  const found = new Map();
  for (let after = ""; after !== null; ) {
    const page = await get(`entities${queryString({ queries: false, after, limit: PAGE })}`);
    for (const one of page.entities) found.set(one.id, { ...one, moved: {} });
    after = page.next;
  }
  entities.value = found;
};

const take = (frame) => {
  const elapsed = movedAt.value ? Math.max(0.2, (frame.at_ms - movedAt.value) / 1_000) : 1;
  const now = new Map();
  const moved = new Map(frame.entities.map((one) => [one.id, one]));
  const unknown = frame.entities.some((one) => !entities.value.has(one.id));
  for (const [id, one] of entities.value) {
    if (frame.gone.includes(id)) continue;
    const by = moved.get(id);
    const rates = {};
    const statistics = by ? { ...one.statistics, memory_bytes: by.memory_bytes } : one.statistics;
    for (const name of ["cpu_ns", "rows_in", "rows_out", "bytes_in", "bytes_out"]) {
      const grown = by?.[name] ?? 0;
      rates[name] = grown / elapsed;
      if (grown) statistics[name] = (one.statistics[name] ?? 0) + grown;
    }
    now.set(id, { ...one, statistics, moved: rates });
  }
  entities.value = now;
  movedAt.value = frame.at_ms;
  if (unknown) readAll().catch(() => {});
};

const begin = () => {
  movedAt.value = 0;
  const read = () =>
    readAll().then(
      () => (entitiesError.value = null),
      (error) => (entitiesError.value = error),
    );
  close = openStream("entities/events?queries=false&every_ms=1000", {
    onEvent: (kind, data) => (kind === "entities" ? take(data) : undefined),
    onState: (state, error) => {
      if (state === "open") read();
      if (error) entitiesError.value = error;
    },
  });
};

/** Keep `entities` up to date while the component is shown. */
export const useEntities = () =>
  useEffect(() => {
    if (listeners++ === 0) begin();
    return () => {
      if (--listeners === 0) close();
    };
  }, []);
