// Numbers with their units, as people read them.

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];
const THOUSANDS = ["", "k", "M", "G", "T"];
const NOTHING = "–";

const known = (value) => typeof value === "number" && Number.isFinite(value);
const digits = (value) => (value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

const scaled = (value, step, names) => {
  let size = Math.abs(value);
  let place = 0;
  while (size >= step && place < names.length - 1) {
    size /= step;
    place += 1;
  }
  return [`${value < 0 ? "-" : ""}${digits(size)}`, names[place]];
};

/** 1203441 -> "1,203,441". @param {number|null} value */
export const count = (value) => (known(value) ? plain.format(value) : NOTHING);

/** 1203441 -> "1.20M". @param {number|null} value */
export const short = (value) =>
  known(value)
    ? Math.abs(value) < 10_000
      ? Number.isInteger(value)
        ? plain.format(value)
        : digits(Math.abs(value)).replace(/^/, value < 0 ? "-" : "")
      : scaled(value, 1_000, THOUSANDS).join("")
    : NOTHING;

/** 1234.5 -> "1,235 /s". @param {number|null} value @param {string} [of] */
export const rate = (value, of = "") =>
  known(value) ? `${short(value >= 100 ? Math.round(value) : value)}${of ? ` ${of}` : ""}/s` : NOTHING;

/** 1536 -> "1.50 KiB". @param {number|null} value */
export const bytes = (value) => (known(value) ? scaled(value, 1_024, BYTES).join(" ") : NOTHING);

/** 0.123 -> "12.3 %". @param {number|null} value */
export const share = (value) => (known(value) ? `${value !== 0 && Math.abs(value) < 0.001 ? "< 0.1" : digits(value * 100)} %` : NOTHING);

/** 65000 -> "1 min 5 s". @param {number|null} ms */
export const duration = (ms) => {
  if (!known(ms)) return NOTHING;
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1) return `${digits(ms * 1_000)} µs`;
  if (ms < 1_000) return `${digits(ms)} ms`;
  const s = ms / 1_000;
  if (s < 60) return `${digits(s)} s`;
  /** @type {[number, string][]} */
  const parts = [
    [31_557_600, "y"],
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = parts.findIndex(([size]) => s >= size);
  const [size, name] = parts[first];
  const whole = Math.floor(s / size);
  const rest = parts[first + 1] ? Math.floor((s % size) / parts[first + 1][0]) : 0;
  return `${whole} ${name}${rest && whole < 100 ? ` ${rest} ${parts[first + 1][1]}` : ""}`;
};

/** An instant in UTC. @param {number|null} ms since 1970 */
export const instant = (ms) => {
  if (!known(ms)) return NOTHING;
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return `${count(ms)} ms`;
  const text = date.toISOString().replace("T", " ").replace("Z", "");
  return ms % 1_000 ? text : text.slice(0, -4);
};

/** The same in the time of this browser, for tooltips. @param {number|null} ms */
export const local = (ms) =>
  known(ms) && Math.abs(ms) < 8.64e15 ? `${new Date(ms).toLocaleString(undefined, { timeZoneName: "short" })}` : "";

/**
 * A value of an attribute by its unit.
 * @param {any} value @param {string|null} unit
 */
export const valued = (value, unit = null) => {
  if (value === null || value === undefined) return NOTHING;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "share":
      return share(value);
    case "ns":
      return duration(value / 1e6);
    case "ms":
      return value > 1e11 ? instant(value) : duration(value);
    case "s":
      return duration(value * 1_000);
    case null:
    case undefined:
      return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
    default:
      return `${Number.isInteger(value) ? count(value) : Number(value.toPrecision(4))} ${unit}`;
  }
};
