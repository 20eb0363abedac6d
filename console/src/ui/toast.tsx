import { Signal, useSignal } from "../data/signal.ts";

type Toast = { id: number; text: string; isError: boolean };

const toasts = new Signal<Toast[]>([]);
const SHOWN_MS = 6000;
let next = 0;

export function tell(text: string, isError = false): void {
  const id = next++;
  toasts.set([...toasts.value, { id, text, isError }].slice(-4));
  setTimeout(() => toasts.set(toasts.value.filter((toast) => toast.id !== id)), SHOWN_MS);
}

/** Runs the work and shows a toast if it fails. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), true);
    return false;
  }
}

export function Toasts() {
  return (
    <div
      role="status"
      aria-live="polite"
      className="fixed right-3 bottom-16 z-50 flex w-80 max-w-[calc(100vw-24px)] flex-col gap-2 md:bottom-4"
    >
      {useSignal(toasts).map(({ id, text, isError }) => (
        <div key={id} className={`panel bg-raised px-3.5 py-2.5 shadow-lg ${isError ? "text-bad" : ""}`}>
          {text}
        </div>
      ))}
    </div>
  );
}
