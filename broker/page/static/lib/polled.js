// Something that is asked for again and again while the component is shown and the tab is seen.
import { useEffect, useState } from "../vendor/core.js";

/**
 * What `load` gives, and anew every so often: `[value, error, again]`. The last value stays where asking failed. Values of
 * earlier `deps` are forgotten.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} deps
 * @param {number} every_ms
 * @returns {[T | null, any, () => void]}
 */
export const usePolled = (load, deps, every_ms) => {
  const [found, setFound] = useState({ key: null, value: null, error: null });
  const [turn, setTurn] = useState(0);
  const key = JSON.stringify(deps);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const run = async () => {
      clearTimeout(timer);
      if (document.hidden || abort.signal.aborted) return;
      try {
        const value = await load(abort.signal);
        if (!abort.signal.aborted) setFound({ key, value, error: null });
      } catch (error) {
        if (!abort.signal.aborted) setFound((now) => ({ key, value: now.key === key ? now.value : null, error }));
      }
      if (!abort.signal.aborted) timer = window.setTimeout(run, every_ms);
    };
    document.addEventListener("visibilitychange", run);
    run();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", run);
    };
  }, [key, every_ms, turn]);
  const mine = found.key === key ? found : { value: null, error: null };
  return [mine.value, mine.error, () => setTurn((now) => now + 1)];
};
