import { Signal } from "./signal.ts";

const KEY = "everstep.name";

/** The name that the reader's messages are sent under. */
export const myName = new Signal(localStorage.getItem(KEY) ?? "operator");

export function rename(name: string): void {
  const chosen = name.trim() || "operator";
  localStorage.setItem(KEY, chosen);
  myName.set(chosen);
}
