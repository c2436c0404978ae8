// The plan as a drawing: nodes, edges as wide as what flows through them, and dots that move.

import { bytes, count, duration, rate, share, short } from "../../lib/units.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/core.js";
import { Dots } from "./dots.js";
import { HEIGHT, useLayout, WIDTH } from "./layout.js";

const ZOOM_MIN = 0.15;
const ZOOM_MAX = 2;
/** So large nodes can be read; what does not fit then is scrolled to. */
const LEGIBLE = 0.72;
const NARROW_PX = 700;
const CHARACTERS = 24;

const cut = (text, most = CHARACTERS) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** What a node is called. */
export const titleOf = (node) => (node.members.length > 1 ? `${count(node.members.length)} × ${node.title}` : node.title);

/** All of a node in a sentence, for screen readers. */
export const spoken = (node) =>
  [
    `${titleOf(node)} ${node.name}`,
    `${rate(node.rate, "rows")} out`,
    `${share(node.cpu)} of a core`,
    bytes(node.bytes),
    node.queued === null ? null : `${count(node.queued)} rows queued${node.oldest_ms ? `, the oldest ${duration(node.oldest_ms)}` : ""}`,
    `${count(node.queries)} queries`,
    node.members.length > 1 ? "folded: Enter opens it" : null,
  ]
    .filter(Boolean)
    .join(", ");

const pathOf = (points) => {
  const at = ([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`;
  let found = `M${at(points[0])}`;
  for (let i = 1; i < points.length - 1; i += 1) {
    const [x, y] = points[i];
    const [next, below] = points[i + 1];
    found += ` Q${at(points[i])} ${at(i === points.length - 2 ? points[i + 1] : [(x + next) / 2, (y + below) / 2])}`;
  }
  return points.length > 2 ? found : `${found} L${at(points[1])}`;
};

const Node = ({ node, at, selected, lit, focusable, onOpen, onFocus, onKey }) => {
  const held = node.queued ? `${short(node.queued)} queued` : bytes(node.bytes);
  const kind = node.type.split(" ")[0];
  return html`<g
    class=${`plan-node kind-${kind} ${selected ? "selected" : ""} ${lit === false ? "dimmed" : ""} ${lit ? "lit" : ""} ${node.members.length > 1 ? "folded" : ""}`}
    transform=${`translate(${at.x},${at.y})`}
    role="button"
    aria-label=${spoken(node)}
    aria-pressed=${selected ? "true" : "false"}
    tabindex=${focusable ? 0 : -1}
    data-key=${node.key}
    onClick=${() => onOpen(node)}
    onFocus=${() => onFocus(node.key)}
    onKeyDown=${(event) => onKey(event, node)}
  >
    <title>${spoken(node)}</title>
    ${node.members.length > 1 && html`<rect class="behind" x="5" y="5" width=${WIDTH} height=${HEIGHT} rx="7" />`}
    <rect class="face" width=${WIDTH} height=${HEIGHT} rx="7" />
    <rect class="stripe" width="5" height=${HEIGHT} rx="2.5" />
    <text x="14" y="18" class="plan-title">${titleOf(node)}</text>
    <text x=${WIDTH - 8} y="18" text-anchor="end" class="small">${node.queries ? `${short(node.queries)} q` : ""}</text>
    <text x="14" y="35" class="plan-name">${cut(node.name)}</text>
    <text x="14" y="52" class="small">${cut(`${rate(node.rate, "rows")} · ${held}`, 29)}</text>
    <rect class="track" x="14" y="62" width="92" height="6" rx="3" />
    <rect class="cpu" x="14" y="62" width=${Math.max(0, Math.min(1, node.part)) * 92} height="6" rx="3" />
    <text x=${WIDTH - 8} y="69" text-anchor="end" class="small">${node.cpu >= 0.0005 ? `${share(node.cpu)} core` : ""}</text>
  </g>`;
};

const Edge = ({ edge, points, lit, note }) => {
  const middle = points[Math.floor(points.length / 2)];
  const wide = edge.rate > 0 ? Math.min(7, 1.2 + Math.log10(1 + edge.rate)) : 1;
  const told = [
    edge.rate >= 0.05 ? rate(edge.rate) : null,
    edge.selectivity === null
      ? null
      : `× ${edge.selectivity >= 10 ? short(Math.round(edge.selectivity)) : Number(edge.selectivity.toPrecision(2))}`,
  ];
  return html`<g class=${`plan-edge ${lit === false ? "dimmed" : ""} ${lit ? "lit" : ""} ${edge.rate > 0 ? "flows" : ""}`}>
    <title>${`${rate(edge.rate, "rows")}${edge.selectivity === null ? "" : `, ${Number(edge.selectivity.toPrecision(3))} rows out for each that came`}${edge.count > 1 ? `, ${count(edge.count)} edges` : ""}${note ? `, ${note.text}` : ""}`}</title>
    <path d=${pathOf(points)} stroke-width=${wide} />
    <text x=${middle[0]} y=${middle[1] - 5} text-anchor="middle" class="small">${told.filter(Boolean).join(" ")}</text>
    ${note && html`<text x=${middle[0]} y=${middle[1] + 13} text-anchor="middle" class="pattern">${note.short}</text>`}
  </g>`;
};

/** Along edges: to a node that reads this one, or that it reads; across: to the next one in the same rank. */
const neighbour = (key, way, drawn, layout, direction) => {
  const [x, y] = direction === "LR" ? ["x", "y"] : ["y", "x"];
  const here = layout.at.get(key);
  if (!here) return null;
  const nearest = (keys) =>
    keys
      .filter((one) => layout.at.has(one))
      .sort((one, other) => Math.abs(layout.at.get(one)[y] - here[y]) - Math.abs(layout.at.get(other)[y] - here[y]))[0] ?? null;
  if (way === "on") return nearest(drawn.edges.filter((one) => one.from === key).map((one) => one.to));
  if (way === "back") return nearest(drawn.edges.filter((one) => one.to === key).map((one) => one.from));
  const sign = way === "after" ? 1 : -1;
  const beside = drawn.nodes
    .map((one) => one.key)
    .filter((one) => layout.at.has(one) && Math.abs(layout.at.get(one)[x] - here[x]) < 1 && (layout.at.get(one)[y] - here[y]) * sign > 0);
  return nearest(beside);
};

/**
 * drawn: as `drawnOf` has it. selected: a key. lit: keys that light up; null: nothing is dimmed. notes: by "from\nto" `{short, text}`.
 * onOpen(node): it was clicked, or Enter was pressed on it.
 */
export const Graph = ({ drawn, selected, lit, notes, onOpen }) => {
  const box = useRef(null);
  const [direction, setDirection] = useState(innerWidth < NARROW_PX ? "TB" : "LR");
  const [zoom, setZoom] = useState(null);
  const [focus, setFocus] = useState(null);
  const [layout, error] = useLayout(drawn, direction);

  useEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) =>
      setDirection(contentRect.width && contentRect.width < NARROW_PX ? "TB" : "LR"),
    );
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const fitting = () => {
    if (!layout || !box.current) return 1;
    const { clientWidth, clientHeight } = box.current;
    const wide = (clientWidth - 4) / layout.width;
    const high = (clientHeight - 4) / layout.height;
    return Math.min(1, Math.max(ZOOM_MIN, direction === "TB" ? wide : Math.min(wide, high)));
  };
  const scale = zoom ?? Math.max(LEGIBLE, fitting());
  const to = (wanted) => setZoom(Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, wanted)));

  // What lights up is brought into sight.
  const wanted = selected ?? (lit && [...lit].find((key) => layout?.at.has(key)));
  useLayoutEffect(() => {
    const at = layout && wanted && layout.at.get(wanted);
    if (!at) return;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = box.current;
    const [x, y] = [at.x * scale, at.y * scale];
    if (x < scrollLeft || x + WIDTH * scale > scrollLeft + clientWidth) box.current.scrollLeft = x - clientWidth / 3;
    if (y < scrollTop || y + HEIGHT * scale > scrollTop + clientHeight) box.current.scrollTop = y - clientHeight / 3;
  }, [wanted, layout, scale]);

  const go = (key) => {
    if (!key) return;
    setFocus(key);
    box.current.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  };
  const onKey = (event, node) => {
    const ways =
      direction === "LR"
        ? { ArrowRight: "on", ArrowLeft: "back", ArrowDown: "after", ArrowUp: "before" }
        : { ArrowDown: "on", ArrowUp: "back", ArrowRight: "after", ArrowLeft: "before" };
    if (event.key === "Enter" || event.key === " ") onOpen(node);
    else if (ways[event.key]) go(neighbour(node.key, ways[event.key], drawn, layout, direction));
    else if (event.key === "+") to(scale * 1.25);
    else if (event.key === "-") to(scale / 1.25);
    else if (event.key === "0") setZoom(null);
    else return;
    event.preventDefault();
  };

  const drag = useRef(null);
  const onPointerDown = (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0 || event.target.closest(".plan-node")) return;
    drag.current = { x: event.clientX + box.current.scrollLeft, y: event.clientY + box.current.scrollTop };
    box.current.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event) => {
    if (!drag.current) return;
    box.current.scrollLeft = drag.current.x - event.clientX;
    box.current.scrollTop = drag.current.y - event.clientY;
  };
  const onWheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    to(scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  };
  useEffect(() => {
    const place = box.current;
    place.addEventListener("wheel", onWheel, { passive: false });
    return () => place.removeEventListener("wheel", onWheel);
  });

  const there = layout ? drawn.nodes.filter((one) => layout.at.has(one.key)) : [];
  const first = there.some((one) => one.key === focus) ? focus : there[0]?.key;
  const edges = layout
    ? drawn.edges
        .map((edge) => ({ edge, id: `${edge.from}\n${edge.to}`, points: layout.paths.get(`${edge.from}\n${edge.to}`) }))
        .filter((one) => one.points)
    : [];
  const isLit = (...keys) => (lit === null ? undefined : keys.every((key) => lit.has(key)));
  return html`
    <div class="graph-tools" role="group" aria-label="Zoom">
      <button type="button" class="small" aria-label="Zoom out" onClick=${() => to(scale / 1.25)}>−</button>
      <span class="dim">${Math.round(scale * 100)} %</span>
      <button type="button" class="small" aria-label="Zoom in" onClick=${() => to(scale * 1.25)}>+</button>
      <button type="button" class="small" onClick=${() => to(fitting())}>Fit</button>
    </div>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <div class="plan-graph" ref=${box} data-laid-out=${layout ? there.length : undefined} onPointerDown=${onPointerDown} onPointerMove=${onPointerMove} onPointerUp=${() => (drag.current = null)} onPointerCancel=${() => (drag.current = null)}>
      ${!layout && !error && html`<p class="empty">laying out ${count(drawn.nodes.length)} nodes …</p>`}
      ${
        layout &&
        html`<svg role="group" aria-label="The running plan. Arrow keys go along edges, Enter opens a node, + and - zoom, 0 fits." width=${layout.width * scale} height=${layout.height * scale} viewBox=${`0 0 ${layout.width} ${layout.height}`}>
          <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" /></marker></defs>
          ${edges.map(({ edge, id, points }) => html`<${Edge} key=${id} edge=${edge} points=${points} lit=${isLit(edge.from, edge.to)} note=${notes.get(id)} />`)}
          <${Dots} edges=${edges.filter(({ edge }) => isLit(edge.from, edge.to) !== false).map(({ edge, id, points }) => ({ id, rate: edge.rate, points }))} />
          ${there.map(
            (node) => html`<${Node}
              key=${node.key}
              node=${node}
              at=${layout.at.get(node.key)}
              selected=${node.key === selected}
              lit=${isLit(node.key)}
              focusable=${node.key === first}
              onOpen=${onOpen}
              onFocus=${setFocus}
              onKey=${onKey}
            />`,
          )}
        </svg>`
      }
    </div>`;
};
