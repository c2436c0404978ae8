// What this tab alone knows: the token, the handles, and how the page is to look.
import { computed, effect, signal } from "../vendor/core.js";

/** @param {string} name @param {string|null} fallback */
const kept = (name, fallback = null) => {
  const found = signal(sessionStorage.getItem(name) ?? fallback);
  effect(() => {
    if (found.value === null || found.value === fallback) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, found.value);
  });
  return found;
};

/** The bearer token; null: none was asked for. */
export const token = kept("token");
/** Whether the page asks for the token now, and why. @type {{value: string|null}} */
export const tokenWanted = signal(null);

const handles = kept("handles", "{}");

/** The handle of a query in this tab, or null. @param {string} queryId */
export const handleOf = (queryId) => {
  const kept = JSON.parse(handles.value);
  return Object.hasOwn(kept, queryId) ? kept[queryId] : null; // an address may ask for `constructor`
};

/** @param {string} queryId @param {string} handle */
export const keepHandle = (queryId, handle) => {
  handles.value = JSON.stringify({ ...JSON.parse(handles.value), [queryId]: handle });
};

/** @param {string} queryId */
export const forgetHandle = (queryId) => {
  const { [queryId]: _, ...others } = JSON.parse(handles.value);
  handles.value = JSON.stringify(others);
};

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** The public id of the query that a handle opens: base32 of its SHA-256, shortened. @param {string} handle */
export const idOf = async (handle) => {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(handle)));
  const bits = [...digest].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return Array.from({ length: 26 }, (_, place) => BASE32[Number.parseInt(bits.slice(place * 5, place * 5 + 5), 2)]).join("");
};

/**
 * Keep the handles of an address, `#/queries?handles=a,b`, and take them out of it: what follows `#` is sent
 * nowhere, and the browser's history is not to have them.
 */
export const keepHandlesOfAddress = async () => {
  const [path, given = ""] = location.hash.split("?", 2);
  const params = new URLSearchParams(given);
  const found = (params.get("handles") ?? "").split(",").filter(Boolean);
  if (!found.length || !crypto.subtle) return;
  params.delete("handles");
  history.replaceState(null, "", `${path || "#/"}${params.size ? `?${params}` : ""}`);
  for (const handle of found) keepHandle(await idOf(handle), handle);
};

/** The ids of the queries whose handles this tab has. */
export const opened = computed(() => Object.keys(JSON.parse(handles.value)));

/** Who looks, as the broker says: `{operator, read_only}`; null while not known. */
export const me = signal(null);
/** The person's own switch: look, touch nothing. */
export const locked = kept("locked", "no");
/** Whether nothing may be changed from here. */
export const readOnly = computed(() => locked.value === "yes" || me.value?.read_only === true);

/** `auto`, `light` or `dark`; stays for the browser. */
export const theme = signal(localStorage.getItem("theme") ?? "auto");
const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", () => (systemDark.value = system.matches));
/** Whether the page is dark now. */
export const dark = computed(() => (theme.value === "auto" ? systemDark.value : theme.value === "dark"));
effect(() => {
  document.documentElement.dataset.theme = dark.value ? "dark" : "light";
  if (theme.value === "auto") localStorage.removeItem("theme");
  else localStorage.setItem("theme", theme.value);
});
