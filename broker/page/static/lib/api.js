// Requests to the public API of the broker that served the page.
import { token, tokenWanted } from "./session.js";

/** What the API refused, or why it could not be asked (status 0). */
export class ApiError extends Error {
  /** @param {number} status @param {Record<string, any>} told */
  constructor(status, told) {
    super(told.message ?? "the broker gave no reason");
    this.status = status;
    this.code = told.code ?? "error";
    this.line = told.line ?? null;
    this.column = told.column ?? null;
    this.hint = told.hint ?? null;
    this.told = told;
  }
}

const NO_ANSWER = {
  code: "no_connection",
  message: "the broker does not answer",
  hint: "is it running? this page tries again by itself",
};

const SENDABLE = /^[\x21-\x7e]*$/;
const NO_TOKEN = {
  code: "unauthorized",
  message: "this is no token",
  hint: "a token has letters, digits and signs of ASCII, and no blanks",
};

/**
 * The response to a request; errors are thrown.
 * @param {string} path below the broker's address, without a leading slash
 * @param {{method?: string, body?: any, handle?: string|null, signal?: AbortSignal, accept?: string, headers?: Record<string, string>}} [options]
 * @returns {Promise<Response>}
 */
export const request = async (path, { method = "GET", body, handle, signal, accept, headers: more } = {}) => {
  /** @type {Record<string, string>} */
  const headers = { Accept: accept ?? "application/json", ...more };
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  if (handle) headers["Tureen-Handle"] = handle;
  if (!SENDABLE.test(token.value ?? "")) {
    tokenWanted.value = "the token is not accepted";
    throw new ApiError(401, NO_TOKEN);
  }
  if (body !== undefined) headers["Content-Type"] ??= "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  } catch (failed) {
    if (failed.name === "AbortError") throw failed;
    throw new ApiError(0, NO_ANSWER);
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({ message: `the broker answered ${response.status}` }));
  if (response.status === 401) tokenWanted.value = token.value ? "the token is not accepted" : "it asks for a token";
  throw new ApiError(response.status, told);
};

const json = async (path, options) => (await request(path, options)).json();

/** @param {string} path @param {object} [options] */
export const get = (path, options) => json(path, options);
/** @param {string} path @param {any} body @param {object} [options] */
export const post = (path, body, options) => json(path, { ...options, method: "POST", body });
/** @param {string} path @param {any} body @param {object} [options] */
export const patch = (path, body, options) => json(path, { ...options, method: "PATCH", body });
/** @param {string} path @param {any} body @param {object} [options] */
export const put = (path, body, options) => json(path, { ...options, method: "PUT", body });
/** @param {string} path @param {object} [options] */
export const del = (path, options) => json(path, { ...options, method: "DELETE" });

/** The path of an entity, whose id may hold anything. @param {string} id */
export const entityPath = (id) => `entities/${id.split("/").map(encodeURIComponent).join("/")}`;

/** `?a=b&...` of what is neither null nor empty. @param {Record<string, any>} given */
export const queryString = (given) => {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(given))
    if (value !== null && value !== undefined && value !== "") found.set(name, String(value));
  const text = found.toString();
  return text ? `?${text}` : "";
};
