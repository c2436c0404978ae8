// What the broker's SQL is made of, as the broker tells it: asked for once, when a view first needs it.
import { computed, signal } from "../vendor/core.js";
import { get } from "./api.js";

/** `GET /language`; null while not known. */
export const language = signal(null);

let asked = null;

/** Ask for it, if nobody has. A refusal is forgotten, so that the next view asks again. @returns {Promise<any>} */
export const loadLanguage = () => {
  asked ??= get("language").then(
    (found) => (language.value = found),
    (refused) => {
      asked = null;
      throw refused;
    },
  );
  return asked;
};

/**
 * Kinds of words by the word in capitals: "keyword", "type", "function" (as aliases too).
 * @type {{value: Map<string, string>}}
 */
export const words = computed(() => {
  const found = new Map();
  if (!language.value) return found;
  for (const one of language.value.functions) for (const name of [one.name, ...one.aliases]) found.set(name, "function");
  for (const one of language.value.types) for (const name of [one.name, ...one.aliases]) found.set(name, "type");
  for (const unit of language.value.units) for (const word of unit.length > 3 ? [unit, `${unit}S`] : []) found.set(word, "keyword");
  for (const word of language.value.keywords) found.set(word, "keyword");
  return found;
});
