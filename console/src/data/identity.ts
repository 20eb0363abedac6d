import { Signal } from "./signal.ts";

const KEY = "everstep.name";

/** Who the reader is to the agents: their words are sent under this name. */
export const myName = new Signal(localStorage.getItem(KEY) ?? "operator");

export function rename(name: string): void {
  const chosen = name.trim() || "operator";
  localStorage.setItem(KEY, chosen);
  myName.set(chosen);
}
