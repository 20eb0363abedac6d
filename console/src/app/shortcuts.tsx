import { useEffect } from "react";
import { Signal, useSignal } from "../data/signal.ts";
import { Dialog } from "../ui/dialog.tsx";
import { go } from "./router.ts";

const isHelpOpen = new Signal(false);
export const openHelp = (): void => isHelpOpen.set(true);

const PLACES: Readonly<Record<string, string>> = {
  s: "/",
  n: "/inbox",
  c: "/conversations",
  a: "/agents",
  f: "/search",
  w: "/webhooks",
  y: "/system",
};

const HELP: [keys: string[], what: string][] = [
  [["g", "s"], "Sessions"],
  [["g", "n"], "Needs me"],
  [["g", "c"], "Conversations"],
  [["g", "a"], "Agents"],
  [["g", "f"], "Search all history"],
  [["g", "w"], "Webhooks"],
  [["g", "y"], "System"],
  [["n"], "Start an agent"],
  [["/"], "Search on this page"],
  [["j", "k"], "Next, previous row or step"],
  [["Enter"], "Open the row"],
  [["x"], "Select the row"],
  [["p"], "Pause or resume the session"],
  [["m"], "Guide the session"],
  [["a"], "Answer what the session asks"],
  [["u"], "Freeze the list of steps, or let it follow again"],
  [["Ctrl", "Enter"], "Send"],
  [["?"], "This help"],
];

const isTyping = (event: KeyboardEvent): boolean =>
  event.target instanceof HTMLElement &&
  (event.target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) &&
  !(event.target instanceof HTMLInputElement && event.target.type === "checkbox");

const hasModifier = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey || event.altKey;

/** Keys of a page, while no field is being typed in and no dialog is open. */
export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || hasModifier(event) || isTyping(event)) return;
      if (document.querySelector("[role=dialog]")) return;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act(event);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  });
}

/** A place's letter counts for so long after g. */
const AFTER_G_MS = 1500;

export function Shortcuts() {
  useEffect(() => {
    let pressedG = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent) => {
      if (hasModifier(event) || isTyping(event)) return;
      const place = performance.now() - pressedG < AFTER_G_MS ? PLACES[event.key] : undefined;
      pressedG = event.key === "g" ? performance.now() : Number.NEGATIVE_INFINITY;
      const act = place === undefined ? EVERYWHERE[event.key] : () => go(place);
      if (!act) return;
      // It is not for the page's own keys.
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", press, { capture: true });
    return () => window.removeEventListener("keydown", press, { capture: true });
  }, []);
  if (!useSignal(isHelpOpen)) return null;
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => isHelpOpen.set(false)}>
      <dl className="grid grid-cols-[1fr_auto] gap-x-6 gap-y-2">
        {HELP.map(([keys, what]) => (
          <div key={what} className="contents">
            <dt>{what}</dt>
            <dd className="flex items-start justify-end gap-1">
              {keys.map((key) => (
                <kbd key={key} className="rounded border border-line bg-sunken px-1.5 font-mono text-[12px]">
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

const EVERYWHERE: Readonly<Record<string, () => void>> = {
  g: () => {},
  "?": openHelp,
  n: () => {
    if (!document.querySelector("[role=dialog]")) go("/start");
  },
  "/": () => {
    const field = document.querySelector<HTMLInputElement>("[data-search]");
    field?.focus();
    field?.select();
  },
};
