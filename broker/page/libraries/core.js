// Reactivity and plots.
import htm from "htm";
import { h } from "preact";

export { Component, Fragment, createRef, h, render } from "preact";
export {
  useCallback,
  useEffect,
  useErrorBoundary,
  useId,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from "preact/hooks";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export { default as uPlot } from "uplot";
export const html = htm.bind(h);
