// Two bars with a border between them that is dragged, or moved by keys.

import { bytes } from "../../lib/units.js";
import { html, useRef } from "../../vendor/core.js";

const STEPS = 100;

/**
 * left gives `amount` bytes, at most `most`, to right.
 * @param {{left: any, right: any, amount: number, most: number, onAmount: (bytes: number) => void, locked: boolean}} props
 */
export const Divider = ({ left, right, amount, most, onAmount, locked }) => {
  const box = useRef(null);
  const whole = Math.max(1, left.bytes + right.bytes);
  const at = (100 * (left.bytes - amount)) / whole;

  const drag = (event) => {
    if (locked || most <= 0) return;
    event.preventDefault();
    const bar = event.currentTarget;
    bar.setPointerCapture(event.pointerId);
    const move = ({ clientX }) => {
      const { left: start, width } = box.current.getBoundingClientRect();
      onAmount(left.bytes - ((clientX - start) / width) * whole);
    };
    const stop = () => {
      bar.removeEventListener("pointermove", move);
      bar.removeEventListener("pointerup", stop);
      bar.removeEventListener("pointercancel", stop);
    };
    bar.addEventListener("pointermove", move);
    bar.addEventListener("pointerup", stop);
    bar.addEventListener("pointercancel", stop);
  };

  const step = Math.max(1, Math.round(most / STEPS));
  const press = (event) => {
    const to = {
      ArrowLeft: amount + step,
      ArrowDown: amount + step,
      ArrowRight: amount - step,
      ArrowUp: amount - step,
      PageDown: amount + 10 * step,
      PageUp: amount - 10 * step,
      Home: most,
      End: 0,
    }[event.key];
    if (to === undefined || locked) return;
    event.preventDefault();
    onAmount(to);
  };

  return html`<div class="divider" ref=${box}>
    <div class="side part-0" style=${{ width: `${at}%` }}><span>${bytes(left.bytes - amount)}</span></div>
    <div
      class="handle"
      role="slider"
      tabindex=${locked ? -1 : 0}
      aria-label="Border between what gives and what takes"
      aria-orientation="horizontal"
      aria-disabled=${locked || most <= 0 ? "true" : undefined}
      aria-valuemin="0"
      aria-valuemax=${Math.max(0, most)}
      aria-valuenow=${amount}
      aria-valuetext=${`${bytes(amount)} are moved`}
      onPointerDown=${drag}
      onKeyDown=${press}
    ></div>
    <div class="side part-1"><span>${bytes(right.bytes + amount)}</span></div>
  </div>`;
};
