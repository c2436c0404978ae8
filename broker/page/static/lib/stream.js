// Streams of server-sent events, read by fetch so that they carry the token and the handle.
import { ApiError, request } from "./api.js";
import { NO_PLACE, takePlace } from "./places.js";

const WAIT_MS = 500;
const WAIT_MS_MAX = 15_000;
const SILENCE_MS = 30_000;

/** Events of a text that comes in pieces. */
export class EventParser {
  #rest = "";

  /** @param {string} text @returns {{event: string, data: string, id: string|null}[]} */
  push(text) {
    this.#rest += text.replaceAll("\r\n", "\n");
    const found = [];
    for (let end = this.#rest.indexOf("\n\n"); end >= 0; end = this.#rest.indexOf("\n\n")) {
      const lines = this.#rest.slice(0, end).split("\n");
      this.#rest = this.#rest.slice(end + 2);
      const one = { event: "message", data: "", id: null };
      for (const line of lines) {
        const colon = line.indexOf(":");
        if (colon <= 0) continue;
        const name = line.slice(0, colon);
        const value = line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") one.data += one.data ? `\n${value}` : value;
        else if (name === "event") one.event = value;
        else if (name === "id") one.id = value;
      }
      if (one.data) found.push(one);
    }
    return found;
  }
}

/**
 * Follow a stream until closed. It comes back by itself after a break, with Last-Event-ID where events have ids, and rests while
 * the tab is hidden.
 *
 * onEvent(kind, data): an event, its data read from JSON; returning "end" closes the stream.
 * onState(state, error): "connecting", "open", "waiting" (it will try again), "refused" (it will not: 4xx), "hidden".
 * @param {string} path
 * @param {{handle?: string|null, onEvent: (kind: string, data: any) => any, onState?: (state: string, error?: ApiError) => void, restsWhileHidden?: boolean, silenceMs?: number}} options
 *   silenceMs: after so long without a byte the connection counts as broken.
 * @returns {() => void} closes it
 */
export const openStream = (path, { handle = null, onEvent, onState = () => {}, restsWhileHidden = true, silenceMs = SILENCE_MS }) => {
  let closed = false;
  let running = null;
  let lastId = null;
  let wait = WAIT_MS;
  let timer = 0;

  const later = (error) => {
    if (closed) return;
    onState("waiting", error);
    timer = setTimeout(run, wait * (0.75 + Math.random() / 2));
    wait = Math.min(WAIT_MS_MAX, wait * 2);
  };

  const run = async () => {
    if (closed || running || (restsWhileHidden && document.hidden)) return;
    const abort = new AbortController();
    running = abort;
    const leave = await takePlace();
    if (running !== abort || closed || leave === null) {
      leave?.();
      if (running !== abort || closed) return;
      running = null;
      later(new ApiError(0, NO_PLACE));
      return;
    }
    let silence = 0;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort("silent"), silenceMs);
    };
    onState("connecting");
    listen(); // a connection that does not answer is silent too
    try {
      const headers = lastId ? { "Last-Event-ID": encodeURIComponent(lastId) } : {};
      const response = await request(path, { accept: "text/event-stream", handle, headers, signal: abort.signal });
      onState("open");
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        listen();
        const { value, done } = await reader.read();
        if (done) break;
        wait = WAIT_MS;
        for (const { event, data, id } of parser.push(value)) {
          if (id !== null) lastId = id;
          if (closed) return;
          if (onEvent(event, JSON.parse(data)) === "end") close();
        }
      }
      if (running !== abort) return;
      running = null;
      later();
    } catch (error) {
      if (running !== abort) return; // the tab was hidden, and is seen again: another one runs
      running = null;
      if (closed || (restsWhileHidden && document.hidden)) return;
      const refused = error instanceof ApiError && error.status >= 400 && error.status < 500 && ![401, 408, 429].includes(error.status);
      if (!refused) later(error instanceof ApiError ? error : undefined);
      else onState("refused", error);
    } finally {
      clearTimeout(silence);
      leave();
    }
  };

  const onVisibility = () => {
    if (closed || !restsWhileHidden) return;
    clearTimeout(timer);
    if (document.hidden) {
      running?.abort();
      running = null;
      onState("hidden");
    } else {
      wait = WAIT_MS;
      run();
    }
  };
  document.addEventListener("visibilitychange", onVisibility);

  const close = () => {
    closed = true;
    clearTimeout(timer);
    running?.abort();
    document.removeEventListener("visibilitychange", onVisibility);
  };
  run();
  return close;
};
