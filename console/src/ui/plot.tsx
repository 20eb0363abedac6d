import { lazy, Suspense } from "react";
import { Boundary } from "./boundary.tsx";

const Canvas = lazy(() => {
  acceptLanguage();
  return import("./plot-canvas.tsx");
});

/** uPlot creates number formats for the browser's language when it loads, and throws on an invalid one (`en-US@posix`). */
function acceptLanguage(): void {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { value: "en-US", configurable: true });
  }
}

export type PlotProps = {
  title: string;
  unit: string;
  xs: number[];
  ys: (number | null)[];
  /** Whether `xs` are seconds since 1970 rather than iterations. */
  isTime?: boolean;
  color?: "accent" | "good" | "warn";
};

/** A line chart over iterations or time. The library is loaded when first needed; if that fails, a sentence says so. */
export function Plot(props: PlotProps) {
  const latest = props.ys.findLast((value) => value !== null);
  return (
    <figure className="panel min-w-0 p-3" aria-label={props.title}>
      <figcaption className="mb-1 flex justify-between gap-2">
        <span className="caption">{props.title}</span>
        <span className="text-muted tabular-nums">
          {latest === undefined || latest === null ? "no data" : `${Number(latest.toPrecision(4))} ${props.unit}`}
        </span>
      </figcaption>
      <Boundary fallback={<p className="text-muted">This plot could not be drawn.</p>}>
        <Suspense fallback={<div className="h-[140px]" />}>
          <Canvas {...props} />
        </Suspense>
      </Boundary>
    </figure>
  );
}
