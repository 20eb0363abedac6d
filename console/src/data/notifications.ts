import { Signal } from "./signal.ts";

const KEY = "everstep.notify";

/** `unavailable`: the browser has no notifications. `refused`: the person denied them. */
export type Notifying = "off" | "on" | "refused" | "unavailable";

/** Browsers on phones have the class but show notifications of service workers only. */
const canNotify = typeof Notification === "function" && window.isSecureContext;

function read(): Notifying {
  if (!canNotify) return "unavailable";
  if (Notification.permission === "denied") return "refused";
  return Notification.permission === "granted" && localStorage.getItem(KEY) === "on" ? "on" : "off";
}

/** Whether this browser notifies when somebody is needed. */
export const notifying = new Signal<Notifying>(read());

/** Asks for permission; only after a click. */
export async function turnOn(): Promise<void> {
  if ((await Notification.requestPermission()) === "granted") localStorage.setItem(KEY, "on");
  notifying.set(read());
}

export function turnOff(): void {
  localStorage.removeItem(KEY);
  notifying.set(read());
}

/** Several tabs show one notification: they share its tag. */
export function notify(title: string, { body, tag, onOpen }: { body: string; tag: string; onOpen: () => void }): void {
  if (notifying.value !== "on") return;
  try {
    const notification = new Notification(title, { body, tag });
    notification.addEventListener("click", () => {
      window.focus();
      notification.close();
      onOpen();
    });
  } catch {
    notifying.set("unavailable");
  }
}
