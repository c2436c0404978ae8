// The editor: CodeMirror, loaded when it is first shown, with the broker's dialect.

import { words } from "../../lib/language.js";
import { tokens } from "../../lib/sql.js";
import { effect, html, useEffect, useRef, useState } from "../../vendor/core.js";
import { completions } from "./completion.js";
import { caret, checked, draft, errorPlace } from "./model.js";

let loading = null;
const load = () => (loading ??= import("../../vendor/editor.js"));

/** Marks of the tokens in sight, of the same classes as texts that are only shown. */
const highlighting = (cm, refresh) => {
  const marks = new Map();
  const markOf = (kind) => {
    if (!marks.has(kind)) marks.set(kind, cm.Decoration.mark({ class: `sql-${kind}` }));
    return marks.get(kind);
  };
  return cm.ViewPlugin.fromClass(
    class {
      constructor(view) {
        this.read(view);
      }
      read(view) {
        this.tokens = tokens(view.state.doc.toString()).filter((token) => !["space", "name", "operator"].includes(token.kind));
        this.mark(view);
      }
      mark(view) {
        const found = new cm.RangeSetBuilder();
        for (const { from, to } of view.visibleRanges)
          for (const token of this.tokens) {
            if (token.from >= to) break;
            if (token.to > from) found.add(token.from, token.to, markOf(token.kind));
          }
        this.decorations = found.finish();
      }
      update(update) {
        if (update.docChanged || update.transactions.some((one) => one.effects.some((each) => each.is(refresh)))) this.read(update.view);
        else if (update.viewportChanged) this.mark(update.view);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
};

/**
 * Text that is typed over a selection is put in by the editor: a browser that does it itself carries styles along in attributes,
 * which the page's policy refuses.
 */
const typedOver = (cm) =>
  cm.EditorView.domEventHandlers({
    beforeinput: (event, view) => {
      const { ranges, main } = view.state.selection;
      if (event.inputType !== "insertText" || event.data === null || main.empty || ranges.length > 1 || view.composing) return false;
      event.preventDefault();
      const insert = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
      const handlers = view.state.facet(cm.EditorView.inputHandler);
      if (!handlers.some((one) => one(view, main.from, main.to, event.data, insert))) view.dispatch(insert());
      return true;
    },
  });

/** What completion offers, or is about to, goes when the caret does. */
const closedOnBlur = (cm) =>
  cm.EditorView.domEventHandlers({
    blur: ({ relatedTarget }, view) => {
      if (!relatedTarget?.closest(".cm-tooltip")) setTimeout(() => cm.closeCompletion(view));
    },
  });

const COMMENTS = [{ commentTokens: { line: "--", block: { open: "/*", close: "*/" } }, closeBrackets: { brackets: ["(", "[", "'", '"'] } }];

const run = (cm, view, onRun) => {
  cm.closeCompletion(view);
  onRun();
  return true;
};

const extensions = (cm, refresh, onRun, onRunAll) => [
  cm.EditorView.cspNonce.of(document.querySelector("meta[name=nonce]")?.getAttribute("content") ?? ""),
  cm.lineNumbers(),
  cm.history(),
  cm.drawSelection(),
  cm.bracketMatching(),
  cm.closeBrackets(),
  cm.EditorState.languageData.of(() => COMMENTS),
  cm.EditorView.lineWrapping,
  cm.placeholder("SELECT ... FROM ...; several statements are divided by ;"),
  highlighting(cm, refresh),
  typedOver(cm),
  closedOnBlur(cm),
  cm.autocompletion({
    override: [
      (context) => {
        if (!context.explicit && !context.matchBefore(/[\p{L}\p{N}_.[('"]$|(FROM|JOIN|=|::) $/iu)) return null;
        const found = completions(context.state.doc.toString(), context.pos, cm.snippetCompletion);
        return found && { ...found, validFor: /^[\p{L}_][\p{L}\p{N}_]*$/u };
      },
    ],
    maxRenderedOptions: 60,
    icons: false,
  }),
  cm.keymap.of([
    { key: "Mod-Enter", run: (view) => run(cm, view, onRun) },
    { key: "Mod-Shift-Enter", run: (view) => run(cm, view, onRunAll) },
    ...cm.closeBracketsKeymap,
    ...cm.completionKeymap,
    ...cm.lintKeymap,
    ...cm.historyKeymap,
    ...cm.defaultKeymap.filter((one) => one.key !== "Mod-Enter"),
    cm.indentWithTab,
  ]),
  cm.EditorView.contentAttributes.of({
    "aria-label": "SQL statements",
    "aria-describedby": "statements-keys",
    spellcheck: "false",
    autocapitalize: "off",
  }),
  cm.EditorView.updateListener.of((update) => {
    if (update.docChanged) draft.value = update.state.doc.toString();
    if (update.docChanged || update.selectionSet) caret.value = update.state.selection.main.head;
  }),
];

const diagnosticsOf = (place) => {
  if (!place) return [];
  const { error } = checked.peek();
  return [
    {
      from: place.from,
      to: place.to,
      severity: "error",
      message: error.hint ? `${error.message}\n${error.hint}` : error.message,
      actions: place.offers.map((offer) => ({
        name: offer,
        apply: (view, from, to) => view.dispatch({ changes: { from, to, insert: offer }, selection: { anchor: from + offer.length } }),
      })),
    },
  ];
};

/**
 * The editor of the draft. handle: a ref that gets `{replace(from, to, text), append(text), focus()}`.
 * @param {{handle: {current: any}, onRun: () => void, onRunAll: () => void}} props
 */
export const Editor = ({ handle, onRun, onRunAll }) => {
  const box = useRef(null);
  const [state, setState] = useState("loading");
  const calls = useRef({ onRun, onRunAll });
  calls.current = { onRun, onRunAll };

  useEffect(() => {
    let view = null;
    let gone = false;
    const ends = [];
    load().then(
      (cm) => {
        if (gone) return;
        const refresh = cm.StateEffect.define();
        view = new cm.EditorView({
          doc: draft.peek(),
          selection: { anchor: Math.min(caret.peek(), draft.peek().length) },
          parent: box.current,
          extensions: extensions(
            cm,
            refresh,
            () => calls.current.onRun(),
            () => calls.current.onRunAll(),
          ),
        });
        handle.current = {
          replace: (from, to, text) => {
            view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length }, scrollIntoView: true });
            view.focus();
          },
          append: (text) => {
            const held = view.state.doc.toString().trimEnd();
            const before = held && !held.endsWith(";") ? `${held};\n\n` : held ? `${held}\n\n` : "";
            view.dispatch({
              changes: { from: 0, to: view.state.doc.length, insert: before + text },
              selection: { anchor: (before + text).length },
              scrollIntoView: true,
            });
            view.focus();
          },
          focus: () => view.focus(),
        };
        ends.push(
          effect(() => {
            words.value;
            view.dispatch({ effects: refresh.of(null) });
          }),
          effect(() => {
            const found = diagnosticsOf(errorPlace.value);
            view.dispatch(cm.setDiagnostics(view.state, found));
          }),
        );
        setState("ready");
      },
      (failed) => setState(failed.message),
    );
    return () => {
      gone = true;
      for (const end of ends) end();
      view?.destroy();
      handle.current = null;
    };
  }, []);

  return html`<div class="statement-editor" ref=${box}>
    ${state === "loading" && html`<p class="dim">The editor is loaded …</p>`}
    ${state !== "loading" && state !== "ready" && html`<p class="refusal" role="alert">The editor could not be loaded: ${state}</p>`}
  </div>`;
};
