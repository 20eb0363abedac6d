import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { PlotProps } from "./plot.tsx";
import { tickFormat } from "./time.tsx";

const HEIGHT = 140;

export default function PlotCanvas({ title, unit, xs, ys, isTime = false, color = "accent" }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const data = useRef<UPlot.AlignedData>(drawable(xs, ys, isTime));
  data.current = drawable(xs, ys, isTime);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      const options = optionsFor(element.clientWidth, title, unit, isTime, color);
      plot.current = new UPlot(options, data.current, element);
    };
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    draw();
    resized.observe(element);
    scheme.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [title, unit, isTime, color]);

  useEffect(() => plot.current?.setData(drawable(xs, ys, isTime)), [xs, ys, isTime]);
  return <div ref={box} className="h-[140px] w-full overflow-hidden" />;
}

/** uPlot draws a single point in time in the middle of a day; an empty point a minute earlier prevents that. */
const drawable = (xs: number[], ys: (number | null)[], isTime: boolean): UPlot.AlignedData =>
  isTime && xs.length === 1
    ? [
        [(xs[0] ?? 0) - 60, ...xs],
        [null, ...ys],
      ]
    : [xs, ys];

/** At least a minute, so that the first few points do not span a year. */
function span(low: number | null, high: number | null, isTime: boolean): [number, number] {
  const end = high ?? (isTime ? Date.now() / 1000 : 1);
  const least = isTime ? 60 : 1;
  return [Math.min(low ?? end, end - least), end];
}

function clocks([first = 0, second = first, ...rest]: number[]): string[] {
  const words = tickFormat((second - first) * 1000);
  return [first, second, ...rest].map((seconds) => words.format(seconds * 1000));
}
/** Room for a time, in pixels. */
const CLOCK = 84;

function optionsFor(width: number, title: string, unit: string, isTime: boolean, color: string): UPlot.Options {
  const styles = getComputedStyle(document.documentElement);
  const tone = (name: string): string => styles.getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: tone("muted"),
    grid: { stroke: tone("line"), width: 1 },
    ticks: { show: false },
    font: "11px sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false },
    padding: [10, isTime ? 30 : 14, 0, 0],
    scales: {
      x: { time: isTime, range: (_plot, low, high) => span(low, high, isTime) },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 24, ...(isTime ? { space: CLOCK, values: (_plot, ticks) => clocks(ticks) } : {}) },
      { ...axis, size: 46 },
    ],
    series: [
      {},
      {
        label: `${title} (${unit})`,
        stroke: tone(color),
        fill: `${tone(color)}1f`,
        width: 1.5,
        points: { show: (plot) => plot.data[0].length < 3 },
      },
    ],
  };
}
