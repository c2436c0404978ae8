// Reactivity and plots.
import htm from "htm";
import { h } from "preact";

export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export { Component, createRef, Fragment, h, render } from "preact";
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
export { default as uPlot } from "uplot";
export const html = htm.bind(h);
