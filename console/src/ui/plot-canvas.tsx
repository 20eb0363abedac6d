import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { PlotProps } from "./plot.tsx";

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

/** A lone point in time would be drawn in the middle of a day; with a place a minute before it, it is not. */
const drawable = (xs: number[], ys: (number | null)[], isTime: boolean): UPlot.AlignedData =>
  isTime && xs.length === 1
    ? [
        [(xs[0] ?? 0) - 60, ...xs],
        [null, ...ys],
      ]
    : [xs, ys];

/** A minute at least, so that the first points do not stand alone in a year. */
function span(low: number | null, high: number | null, isTime: boolean): [number, number] {
  const end = high ?? (isTime ? Date.now() / 1000 : 1);
  const least = isTime ? 60 : 1;
  return [Math.min(low ?? end, end - least), end];
}

/** The reader's own time of day, with seconds where ticks are close. */
function clocks(ticks: number[]): string[] {
  const isClose = (ticks[1] ?? 0) - (ticks[0] ?? 0) < 60;
  const format: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hour12: false };
  if (isClose) format.second = "2-digit";
  return ticks.map((seconds) => new Date(seconds * 1000).toLocaleTimeString(undefined, format));
}

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
    padding: [10, 14, 0, 0],
    scales: {
      x: { time: isTime, range: (_plot, low, high) => span(low, high, isTime) },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 24, ...(isTime ? { values: (_plot: UPlot, ticks: number[]) => clocks(ticks) } : {}) },
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
