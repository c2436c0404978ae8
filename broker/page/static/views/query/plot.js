// A plot of an answer, chosen from the types of its columns; the person may choose otherwise.

import { Curve } from "../../lib/curve.js";
import { count } from "../../lib/units.js";
import { Bar, Empty, Field, Figure } from "../../lib/widgets.js";
import { html, useEffect, useMemo, useState } from "../../vendor/core.js";
import { isCategory, isNumber, isTime, numberOf, textOf } from "./values.js";

const SERIES_MAX = 6;
const BARS_MAX = 30;
const CURVE_MAX = 600;

const looksLikeKey = (name) => /(^|_)(id|key|number|no)$/i.test(name);

/** How many values a column has, up to a limit. */
const kinds = (rows, place, max) => {
  const found = new Set();
  for (const { values } of rows) if (found.add(values[place]).size > max) break;
  return found.size;
};

/**
 * What to draw of an answer: `{kind: "lines"|"bars"|"figure"|"none", x, y, series, reason}`, columns by their places.
 * @param {{name: string, type: string}[]} columns @param {{values: any[]}[]} rows
 */
export const choose = (columns, rows) => {
  const places = (fits) => columns.map((_, place) => place).filter((place) => fits(columns[place].type));
  const numbers = places(isNumber);
  const numbersToDraw = numbers.filter((place) => !looksLikeKey(columns[place].name));
  const y = numbersToDraw[0] ?? numbers[0];
  const [time] = places(isTime);
  const categories = places(isCategory);
  if (y === undefined) return { kind: "none", x: null, y: null, series: null, reason: "the answer has no column of numbers" };
  if (time !== undefined) {
    const series = categories.find((place) => kinds(rows, place, SERIES_MAX) <= SERIES_MAX) ?? null;
    return { kind: "lines", x: time, y, series, reason: null };
  }
  if (categories.length) return { kind: "bars", x: categories[0], y, series: null, reason: null };
  if (rows.length === 1) return { kind: "figure", x: null, y, series: null, reason: null };
  const key = numbers.find((place) => place !== y);
  if (key !== undefined && rows.length <= BARS_MAX) return { kind: "bars", x: key, y, series: null, reason: null };
  return { kind: "none", x: null, y, series: null, reason: "no column has times or categories to draw the numbers over" };
};

/** Points of lines: `{at, series: [{name, values}], left}`; left: rows of categories that are not drawn. */
const lines = (columns, rows, { x, y, series }) => {
  const groups = new Map();
  const instants = new Set();
  for (const { values } of rows) {
    const at = Date.parse(values[x]);
    const number = numberOf(values[y]);
    if (Number.isNaN(at) || Number.isNaN(number)) continue;
    const name = series === null ? columns[y].name : textOf(values[series], columns[series].type);
    if (!groups.has(name)) groups.set(name, new Map());
    groups.get(name).set(at, number);
  }
  const largest = [...groups].toSorted((one, other) => other[1].size - one[1].size);
  const drawn = largest.slice(0, SERIES_MAX).toSorted((one, other) => (one[0] < other[0] ? -1 : 1));
  for (const [, points] of drawn) for (const at of points.keys()) instants.add(at);
  const at = [...instants].toSorted((one, other) => one - other);
  return {
    at,
    series: drawn.map(([name, points]) => ({ name, values: at.map((ms) => points.get(ms) ?? null) })),
    left: largest.slice(SERIES_MAX).map(([name]) => name),
  };
};

const Lines = ({ columns, rows, choice }) => {
  const { at, series, left } = useMemo(() => lines(columns, rows, choice), [rows, columns, choice.x, choice.y, choice.series]);
  if (!at.length) return html`<${Empty}>No row has a time and a number yet.<//>`;
  return html`
    <${Curve} at=${at} series=${series} height=${220} spans=${true} fromZero=${false} label=${`${columns[choice.y].name} over ${columns[choice.x].name}`} />
    <ul class="query-legend">${series.map(({ name }, place) => html`<li key=${name}><span class=${`swatch line-${place + 1}`}></span>${name}</li>`)}</ul>
    ${left.length > 0 && html`<p class="dim">${count(left.length)} more of ${columns[choice.series].name} are not drawn: ${left.slice(0, 3).join(", ")}${left.length > 3 ? ", …" : ""}</p>`}`;
};

const Bars = ({ columns, rows, choice }) => {
  const sums = new Map();
  for (const { values } of rows) {
    const number = numberOf(values[choice.y]);
    if (Number.isNaN(number)) continue;
    const name = textOf(values[choice.x], columns[choice.x].type);
    sums.set(name, (sums.get(name) ?? 0) + number);
  }
  const all = [...sums].toSorted((one, other) => other[1] - one[1]);
  const most = Math.max(...all.map(([, value]) => Math.abs(value)), 0);
  if (!all.length) return html`<${Empty}>No row has a number yet.<//>`;
  const unit = columns[choice.y].name;
  return html`
    <table class="query-bars"><caption>${unit} by ${columns[choice.x].name}${sums.size < rows.length ? ", added up where there are several rows" : ""}</caption><tbody>${all
      .slice(0, BARS_MAX)
      .map(
        ([name, value]) =>
          html`<tr key=${name}><th scope="row">${name}</th><td class="room"><${Bar} value=${most ? Math.abs(value) / most : 0} state=${value < 0 ? "warn" : ""} label=${`${name}: ${value}`} /></td><td class="number">${Number(value.toPrecision(6))}</td></tr>`,
      )}</tbody></table>
    ${all.length > BARS_MAX && html`<p class="dim">${count(all.length - BARS_MAX)} smaller ones are not drawn.</p>`}`;
};

/** One number, with its curve since the view was opened. */
const One = ({ columns, rows, choice, now_ms }) => {
  const [points, setPoints] = useState({ at: [], values: [] });
  const value = rows.length ? rows[0].values[choice.y] : null;
  useEffect(() => {
    if (now_ms === null) return;
    setPoints(({ at, values }) => {
      const number = numberOf(value);
      const known = Number.isNaN(number) ? null : number;
      if (at.at(-1) >= now_ms) return { at, values };
      return { at: [...at, now_ms].slice(-CURVE_MAX), values: [...values, known].slice(-CURVE_MAX) };
    });
  }, [now_ms, value]);
  const name = columns[choice.y].name;
  return html`<${Figure} name=${name} value=${textOf(value, columns[choice.y].type)} note="curve: since this view was opened">
    <${Curve} at=${points.at} series=${[{ name, values: points.values }]} height=${120} label=${name} />
  <//>`;
};

const Choice = ({ label, value, places, columns, none, onChoose }) =>
  html`<${Field} label=${label}>${(
    id,
  ) => html`<select id=${id} value=${value ?? ""} onChange=${(event) => onChoose(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
  ${none && html`<option value="">${none}</option>`}
  ${places.map((place) => html`<option key=${place} value=${place}>${columns[place].name}</option>`)}
</select>`}<//>`;

const KINDS = { lines: "Lines over time", bars: "Bars", figure: "One number", none: "No plot" };

/** rows: those that are held; total: of how many. */
export const Plot = ({ columns, rows, total, now_ms }) => {
  const [own, setOwn] = useState(null);
  const there = useMemo(() => rows.filter((row) => !row.went), [rows]);
  const found = useMemo(() => choose(columns, there), [columns, there.length === 1, there.length > 0, total > BARS_MAX]);
  const shape = columns.map((one) => one.name + one.type).join("\n");
  useEffect(() => setOwn(null), [shape]);
  const choice = own ?? found;
  const places = (fits) => columns.map((_, place) => place).filter((place) => fits(columns[place].type));
  const numbers = places(isNumber);
  const over = choice.kind === "lines" ? places(isTime) : places((type) => isCategory(type) || isNumber(type) || isTime(type));
  const offered = {
    lines: places(isTime).length > 0 && numbers.length > 0,
    bars: numbers.length > 0 && columns.length > 1,
    figure: numbers.length > 0,
    none: true,
  };
  const setKind = (kind) => {
    const y = choice.y ?? numbers[0] ?? null;
    const x =
      kind === "lines"
        ? places(isTime)[0]
        : kind === "bars"
          ? (places(isCategory)[0] ?? columns.findIndex((_, place) => place !== y))
          : null;
    setOwn({ kind, x, y, series: kind === "lines" ? choice.series : null, reason: kind === "none" ? "you chose so" : null });
  };
  return html`
    <div class="row plot-choice">
      <${Field} label="Plot">${(id) =>
        html`<select id=${id} value=${choice.kind} onChange=${(event) => setKind(event.currentTarget.value)}>${Object.keys(KINDS)
          .filter((kind) => offered[kind])
          .map((kind) => html`<option key=${kind} value=${kind}>${KINDS[kind]}</option>`)}</select>`}<//>
      ${["lines", "bars"].includes(choice.kind) && html`<${Choice} label="Over" value=${choice.x} places=${over} columns=${columns} onChoose=${(x) => setOwn({ ...choice, x })} />`}
      ${choice.kind !== "none" && html`<${Choice} label="Number" value=${choice.y} places=${numbers} columns=${columns} onChoose=${(y) => setOwn({ ...choice, y })} />`}
      ${choice.kind === "lines" && html`<${Choice} label="A line for each" value=${choice.series} places=${places((type) => isCategory(type) || type === "INTEGER" || type === "BIGINT")} columns=${columns} none="(one line)" onChoose=${(series) => setOwn({ ...choice, series })} />`}
      ${own && html`<button type="button" class="small" onClick=${() => setOwn(null)}>Choose for me</button>`}
    </div>
    ${choice.kind === "lines" && html`<${Lines} columns=${columns} rows=${there} choice=${choice} />`}
    ${choice.kind === "bars" && html`<${Bars} columns=${columns} rows=${there} choice=${choice} />`}
    ${choice.kind === "figure" && html`<${One} columns=${columns} rows=${there} choice=${choice} now_ms=${now_ms} />`}
    ${choice.kind === "none" && html`<${Empty}>No plot: ${choice.reason}.<//>`}
    ${there.length < total && choice.kind !== "none" && html`<p class="dim">Of the first ${count(there.length)} of ${count(total)} rows.</p>`}`;
};
