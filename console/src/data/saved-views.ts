import { Signal } from "./signal.ts";

/** A named list of sessions; `search` is the query string of its address. */
export type SavedView = { name: string; search: string };

const KEY = "everstep.views";

const isView = (value: unknown): value is SavedView =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as SavedView).name === "string" &&
  typeof (value as SavedView).search === "string";

/** The reader's views, kept in this browser. */
export const savedViews = new Signal<readonly SavedView[]>(read());

function read(): SavedView[] {
  try {
    const views = JSON.parse(localStorage.getItem(KEY) ?? "[]") as unknown;
    return Array.isArray(views) ? views.filter(isView) : [];
  } catch {
    return [];
  }
}

function write(views: readonly SavedView[]): void {
  savedViews.set(views);
  localStorage.setItem(KEY, JSON.stringify(views));
}

/** Replaces a view with the same name. */
export const saveView = (view: SavedView): void =>
  write([...savedViews.value.filter(({ name }) => name !== view.name), view]);

export const removeView = (name: string): void => write(savedViews.value.filter((view) => view.name !== name));
