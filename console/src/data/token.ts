import { Signal } from "./signal.ts";

const KEY = "everstep.token";

/** Whether the server needs a token that the reader has not entered yet. */
export const tokenNeeded = new Signal(false);

export const currentToken = (): string | null => sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);

export function tokenRefused(): void {
  tokenNeeded.set(true);
}

/** Kept for this tab, or for this browser if the reader wants that. */
export function keepToken(token: string, remember: boolean): void {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  (remember ? localStorage : sessionStorage).setItem(KEY, token);
  tokenNeeded.set(false);
}
