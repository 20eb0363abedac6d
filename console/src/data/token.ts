import { Signal } from "./signal.ts";

const KEY = "everstep.token";

/** Whether the server asks for a token that the reader has not given yet. */
export const tokenNeeded = new Signal(false);

export const currentToken = (): string | null => sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);

export function tokenRefused(): void {
  tokenNeeded.set(true);
}

/** Kept for this tab, or for this browser where the reader says so. */
export function keepToken(token: string, remember: boolean): void {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  (remember ? localStorage : sessionStorage).setItem(KEY, token);
  tokenNeeded.set(false);
}
