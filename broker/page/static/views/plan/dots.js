// Batches as they move: dots on the edges, as many as the sampled rates say.
import { html, useEffect, useRef } from "../../vendor/core.js";

const DOTS_MAX = 200;
const PX_PER_S = 90;
const FRAME_MS = 33;
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** How many dots an edge with so many rows a second has: one more for each factor of four. @param {number} rate */
export const dotsOf = (rate) => (rate > 0 ? Math.min(6, 1 + Math.floor(Math.log(1 + rate) / Math.log(4) / 1.5)) : 0);

const lengths = (points) => {
  const found = [0];
  for (let i = 1; i < points.length; i += 1)
    found.push(found[i - 1] + Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]));
  return found;
};

const placeOn = (points, ends, along) => {
  let i = 1;
  while (i < ends.length - 1 && ends[i] < along) i += 1;
  const part = (along - ends[i - 1]) / Math.max(1e-6, ends[i] - ends[i - 1]);
  return [points[i - 1][0] + (points[i][0] - points[i - 1][0]) * part, points[i - 1][1] + (points[i][1] - points[i - 1][1]) * part];
};

/** edges: `[{id, rate, points}]`. Nothing moves where less motion is wanted, or while the tab is hidden. */
export const Dots = ({ edges }) => {
  const place = useRef(null);
  const now = useRef(edges);
  now.current = edges;

  useEffect(() => {
    if (still.matches) return undefined;
    const svg = "http://www.w3.org/2000/svg";
    const known = new Map();
    let circles = [];
    let frame = 0;
    let last = 0;
    const draw = (at) => {
      frame = requestAnimationFrame(draw);
      if (at - last < FRAME_MS) return;
      last = at;
      let used = 0;
      for (const { id, rate, points } of now.current) {
        const dots = Math.min(dotsOf(rate), DOTS_MAX - used);
        if (!dots || !points) continue;
        if (known.get(id)?.points !== points) known.set(id, { points, ends: lengths(points) });
        const { ends } = known.get(id);
        const whole = ends.at(-1);
        for (let i = 0; i < dots; i += 1) {
          const [x, y] = placeOn(points, ends, ((at / 1_000) * PX_PER_S + (i * whole) / dots) % whole);
          if (!circles[used]) {
            circles[used] = place.current.appendChild(document.createElementNS(svg, "circle"));
            circles[used].setAttribute("r", "3");
          }
          circles[used].setAttribute("cx", x.toFixed(1));
          circles[used].setAttribute("cy", y.toFixed(1));
          used += 1;
        }
      }
      for (const circle of circles.slice(used)) circle.remove();
      circles = circles.slice(0, used);
    };
    frame = requestAnimationFrame(draw);
    return () => {
      cancelAnimationFrame(frame);
      for (const circle of circles) circle.remove();
    };
  }, []);

  return html`<g class="dots" aria-hidden="true" ref=${place}></g>`;
};
