import { useSyncExternalStore } from "react";

/** Phones: one column. */
export const NARROW = "(max-width: 767px)";

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    () => matchMedia(query).matches,
  );
}
