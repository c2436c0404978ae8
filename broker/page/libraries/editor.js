// The editor of statements and plans.
export * from "@codemirror/autocomplete";
export * from "@codemirror/commands";
export * from "@codemirror/lang-json";
export * from "@codemirror/lang-sql";
export * from "@codemirror/language";
export * from "@codemirror/lint";
export * from "@codemirror/state";
export * from "@codemirror/view";
