// What the broker tells each second of itself, for all views.
import { computed, signal } from "../vendor/core.js";
import { get } from "./api.js";
import { me, token } from "./session.js";
import { openStream } from "./stream.js";

/** The last frame of `/status/events`; null before the first. */
export const status = signal(null);
/** `{state, broken, since_ms, error}` of the connection to the broker. broken: it was lost or refused, and is not back yet, while it is tried again too. */
export const connection = signal({ state: "connecting", broken: false, since_ms: Date.now(), error: null });
/** Whether what is shown is of now. */
export const live = computed(() => connection.value.state === "open");
/** By how much the broker's clock is ahead of this browser's, in ms. */
export const clockAhead = signal(0);
/** How often the broker came back as another process. */
export const restarts = signal(0);

/** A broker that hangs is seen as soon: a frame comes each second. */
const SILENCE_MS = 10_000;

let close = () => {};

const askWho = () =>
  get("me")
    .then((found) => (me.value = found))
    .catch(() => {});

/** Begin, or begin again with another token. */
export const follow = () => {
  close();
  askWho();
  close = openStream("status/events", {
    silenceMs: SILENCE_MS,
    onEvent: (kind, data) => {
      if (kind !== "status") return;
      if (status.value && status.value.instance !== data.instance) {
        restarts.value += 1;
        askWho(); // it may have come back with other settings
      }
      status.value = data;
      clockAhead.value = data.at_ms - Date.now();
    },
    onState: (state, error = null) => {
      const was = connection.value;
      if (was.state === state && was.error?.code === error?.code) return;
      const broken = ["waiting", "refused"].includes(state) || (state === "connecting" && was.broken);
      const same = broken && was.broken;
      connection.value = { state, broken, since_ms: same ? was.since_ms : Date.now(), error: error ?? (same ? was.error : null) };
    },
  });
};

let before = token.value;
token.subscribe((now) => {
  if (now !== before) follow();
  before = now;
});
