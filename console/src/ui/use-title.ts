import { useEffect } from "react";
import { setPageTitle } from "./page-title.ts";

/** Sets the title of the browser tab. */
export function useTitle(title: string): void {
  useEffect(() => setPageTitle(title), [title]);
}
