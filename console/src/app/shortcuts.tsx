import { lazy, Suspense, useEffect } from "react";
import { Signal, useSignal } from "../data/signal.ts";
import { Dialog } from "../ui/dialog.tsx";
import { PLACES } from "./places.ts";
import { go } from "./router.ts";

const Palette = lazy(() => import("./palette.tsx"));

const isHelpOpen = new Signal(false);
export const openHelp = (): void => isHelpOpen.set(true);
const isPaletteOpen = new Signal(false);
export const openPalette = (): void => isPaletteOpen.set(true);

const HELP: [keys: string[], what: string][] = [
  ...PLACES.map(({ key, label }): [string[], string] => [["g", key], label]),
  [["n"], "Start an agent"],
  [["/"], "Search on this page"],
  [["j", "k"], "Next or previous row or step"],
  [["Enter"], "Open the row"],
  [["x"], "Select the row"],
  [["p"], "Pause or resume the session"],
  [["m"], "Guide the session"],
  [["a"], "Approve, or go to the question"],
  [["d"], "Deny"],
  [["u"], "Freeze or unfreeze the list of steps"],
  [["Ctrl", "Enter"], "Send"],
  [["Ctrl", "K"], "Find a page, a session, an agent or a command"],
  [["?"], "This help"],
];

const isTyping = (event: KeyboardEvent): boolean =>
  event.target instanceof HTMLElement &&
  (event.target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) &&
  !(event.target instanceof HTMLInputElement && event.target.type === "checkbox");

const hasModifier = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey || event.altKey;

/** Keyboard shortcuts of a page, inactive while somebody types or a dialog is open. */
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

/** How long after g a page's letter counts. */
const AFTER_G_MS = 1500;

export function Shortcuts() {
  useEffect(() => {
    let pressedG = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        isPaletteOpen.set(!isPaletteOpen.value);
        return;
      }
      if (hasModifier(event) || isTyping(event)) return;
      const place = performance.now() - pressedG < AFTER_G_MS ? PLACES.find(({ key }) => key === event.key) : undefined;
      pressedG = event.key === "g" ? performance.now() : Number.NEGATIVE_INFINITY;
      const act = place === undefined ? EVERYWHERE[event.key] : () => go(place.path);
      if (!act) return;
      // The page's own shortcuts do not see it.
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", press, { capture: true });
    return () => window.removeEventListener("keydown", press, { capture: true });
  }, []);
  const [help, palette] = [useSignal(isHelpOpen), useSignal(isPaletteOpen)];
  if (palette)
    return (
      <Suspense>
        <Palette onClose={() => isPaletteOpen.set(false)} />
      </Suspense>
    );
  if (!help) return null;
  return <Help />;
}

function Help() {
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
