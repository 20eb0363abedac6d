import { lazy, Suspense } from "react";
import { Boundary } from "./boundary.tsx";

const Canvas = lazy(() => import("./plot-canvas.tsx"));

export type PlotProps = {
  title: string;
  unit: string;
  xs: number[];
  ys: (number | null)[];
  /** Whether `xs` are seconds since 1970 rather than iterations. */
  isTime?: boolean;
  color?: "accent" | "good" | "warn";
};

/** A line over iterations or time. It is loaded when first shown; a failure leaves a sentence. */
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
      <Boundary fallback={<p className="text-muted">The plot cannot be drawn here.</p>}>
        <Suspense fallback={<div className="h-[140px]" />}>
          <Canvas {...props} />
        </Suspense>
      </Boundary>
    </figure>
  );
}
