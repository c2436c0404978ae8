// Curves over time, drawn by uPlot in the colours of the theme.
import { html, uPlot, useEffect, useRef } from "../vendor/core.js";
import { dark } from "./session.js";
import { instant, valued } from "./units.js";

const colours = (element) => {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(name).trim();
  return { ink: of("--ink-dim"), grid: of("--line"), lines: [1, 2, 3, 4, 5, 6].map((number) => of(`--line-${number}`)) };
};

/** Ticks of the axis of time, in UTC. */
const times = (_plot, ticks, _axis, _space, step) =>
  ticks.map((seconds) => {
    const text = new Date(seconds * 1_000).toISOString();
    return step < 1 ? text.slice(11, 23) : step < 60 ? text.slice(11, 19) : step < 86_400 ? text.slice(11, 16) : text.slice(5, 10);
  });

/** Room for the longest label of an axis, in CSS pixels. */
const widthOf = (_, labels) => Math.max(44, 16 + 6.5 * Math.max(0, ...(labels ?? []).map((label) => label.length)));

/**
 * Curves with a common axis of time.
 * at: ms since 1970, ascending. series: `[{name, values, unit?}]`, null where nothing is known. bare: without axes.
 * label: what a screen reader says. spans: lines go on over instants without a value. fromZero: the axis begins at 0.
 */
export const Curve = ({ at, series, unit = null, height = 60, label, bare = false, spans = false, fromZero = true }) => {
  const ref = useRef(null);
  const plot = useRef(null);
  const isDark = dark.value;
  const shape = series.map((one) => one.name).join("\n");

  useEffect(() => {
    const element = ref.current;
    const { ink, grid, lines } = colours(element);
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    plot.current = new uPlot(
      {
        width: Math.max(40, element.clientWidth),
        height,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), "UTC"),
        legend: { show: false },
        cursor: { show: !bare, points: { size: 6 }, drag: { x: false, y: false } },
        scales: {
          x: { time: true },
          y: { range: fromZero ? (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] : undefined },
        },
        axes: bare
          ? [{ show: false }, { show: false }]
          : [
              { ...axis, size: 26, values: times },
              { ...axis, size: widthOf, values: (_, ticks) => ticks.map((tick) => valued(tick, unit)) },
            ],
        series: [
          {},
          ...series.map((one, place) => ({
            label: one.name,
            stroke: lines[place % lines.length],
            fill: series.length === 1 ? `${lines[0]}22` : undefined,
            width: 1.5,
            points: { show: false },
            spanGaps: spans,
          })),
        ],
        padding: bare ? [2, 0, 2, 0] : undefined,
      },
      [[], ...series.map(() => [])],
      element,
    );
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(40, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [shape, unit, height, bare, isDark, spans, fromZero]);

  useEffect(() => {
    plot.current?.setData([at.map((ms) => ms / 1_000), ...series.map((one) => one.values)]);
  }, [at, series, shape, unit, height, bare, isDark]);

  const last = series.map((one) => `${one.name} ${valued(one.values.at(-1), unit)}`).join(", ");
  const text = `${label ?? "curve"}: ${last || "nothing yet"}${at.length ? ` at ${instant(at.at(-1))} UTC` : ""}`;
  return html`<div class="curve" role="img" aria-label=${text} ref=${ref}></div>`;
};
