import { type ComponentProps, lazy, Suspense } from "react";

const LoadedTab = lazy(() => import("./graph-tab.tsx"));

/** Loads the graph when it is first opened. */
export const GraphTab = (props: ComponentProps<typeof LoadedTab>) => (
  <Suspense fallback={<p className="p-4 text-muted">Loading…</p>}>
    <LoadedTab {...props} />
  </Suspense>
);
