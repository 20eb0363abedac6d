import { type RefObject, useEffect, useRef, useState } from "react";
import { type Colors, drawPicture, type View } from "./draw-picture.ts";
import type { Picture } from "./picture.ts";

const COLOR_NAMES = [
  "surface",
  "line",
  "ink",
  "muted",
  "accent",
  "running",
  "good",
  "warn",
  "bad",
  "sunken",
  "on-accent",
] as const satisfies (keyof Colors)[];

function readColors(): Colors {
  const styles = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOR_NAMES.map((name) => [name, styles.getPropertyValue(`--${name}`).trim()])) as Colors;
}

type Latest = { picture: Picture; view: View; selected: number | null };

/** Draws once per frame, however often it is asked to, and again when the size or the colors change. */
export function useDrawing(canvas: RefObject<HTMLCanvasElement | null>, latest: RefObject<Latest>): () => void {
  const [draw] = useState(() => {
    let frame = 0;
    let colors: Colors | undefined;
    const paint = () => {
      frame = 0;
      const element = canvas.current;
      const context = element?.getContext("2d");
      if (!element || !context || element.clientWidth === 0) return;
      const { picture, view, selected } = latest.current;
      const ratio = window.devicePixelRatio;
      const width = element.clientWidth;
      if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
      if (element.height !== Math.round(picture.lanes.height * ratio))
        element.height = Math.round(picture.lanes.height * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      colors ??= readColors();
      const begun = performance.now();
      drawPicture({ context, width, colors, view, selected, lanes: picture.lanes }, picture);
      // For whoever measures it: `npm run bench -- console`.
      performance.measure("everstep.picture", { start: begun, detail: picture.bars.length });
    };
    const ask = () => {
      if (frame === 0) frame = requestAnimationFrame(paint);
    };
    return Object.assign(ask, {
      recolor: () => {
        colors = undefined;
        ask();
      },
    });
  });
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const resized = new ResizeObserver(draw);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    resized.observe(element);
    scheme.addEventListener("change", draw.recolor);
    return () => {
      resized.disconnect();
      scheme.removeEventListener("change", draw.recolor);
    };
  }, [canvas, draw]);
  return draw;
}

/** React's listeners are passive and cannot keep the page from scrolling. */
export function useWheel(
  canvas: RefObject<HTMLCanvasElement | null>,
  turn: (event: WheelEvent, x: number) => void,
): void {
  const latest = useRef(turn);
  latest.current = turn;
  useEffect(() => {
    const element = canvas.current;
    const listener = (event: WheelEvent) => {
      event.preventDefault();
      latest.current(event, event.offsetX);
    };
    element?.addEventListener("wheel", listener, { passive: false });
    return () => element?.removeEventListener("wheel", listener);
  }, [canvas]);
}
