/** The limit for a figure. A figure without a bar is there to explain another one. */
export type Bar = { kind: "at_most" | "below" | "at_least"; value: number };

export type Figure = { figure: string; measured: number; unit: string; bar: Bar | null };

export const atMost = (value: number): Bar => ({ kind: "at_most", value });
export const below = (value: number): Bar => ({ kind: "below", value });
export const atLeast = (value: number): Bar => ({ kind: "at_least", value });

/** A figure that could not be measured (NaN) misses its bar. */
export function keepsBar({ measured, bar }: Figure): boolean {
  if (bar === null) return true;
  switch (bar.kind) {
    case "at_most":
      return measured <= bar.value;
    case "below":
      return measured < bar.value;
    case "at_least":
      return measured >= bar.value;
  }
  return bar.kind satisfies never;
}
