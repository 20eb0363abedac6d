import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../../ui/button.tsx";
import type { View } from "./draw-picture.ts";
import { hintAt, iterationAt } from "./hit.ts";
import type { Lanes, Picture } from "./picture.ts";
import { useDrawing, useWheel } from "./use-drawing.ts";
import { fitting, moved, type Zoom, zoomed } from "./zoom.ts";

type PictureCanvasProps = {
  picture: Picture;
  isLive: boolean;
  selected: number | null;
  onSelect: (iteration: number) => void;
};

const STEP = 1.5;
/** A pointer that moved less than this has clicked. */
const CLICK_PX = 4;

/** The drawing: wheel, buttons and keys zoom, dragging pans, a click selects a step. */
export function PictureCanvas({ picture, isLive, selected, onSelect }: PictureCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [zoom, setZoom] = useState<Zoom>(null);
  const [hint, setHint] = useState<{ x: number; words: string } | null>(null);
  const drag = useRef<{ x: number; startX: number } | null>(null);
  const view = fitting(picture, zoom);
  const latest = useRef({ picture, view, selected });
  latest.current = { picture, view, selected };
  const draw = useDrawing(canvas, latest);
  useEffect(draw, [draw, picture, selected, zoom]);

  const change: Change = (next) => setZoom((before) => limited(next(fitting(picture, before)), picture));
  useWheel(canvas, (event, x) => {
    const { clientWidth } = event.currentTarget as HTMLCanvasElement;
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const delta = event.deltaX || event.deltaY;
    change((before) =>
      isSideways ? moved(before, delta / clientWidth) : zoomed(before, 1.0015 ** event.deltaY, x / clientWidth),
    );
  });

  const keys = keysOf(change, () => setZoom(null));
  const press = (event: KeyboardEvent) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const move = (event: PointerEvent<HTMLCanvasElement>) => {
    const x = event.nativeEvent.offsetX;
    if (drag.current) {
      const by = (drag.current.x - x) / event.currentTarget.clientWidth;
      drag.current.x = x;
      change((before) => moved(before, by));
    } else setHint(hintAt(picture, view, { x, y: event.nativeEvent.offsetY, width: event.currentTarget.clientWidth }));
  };
  const release = (event: PointerEvent<HTMLCanvasElement>) => {
    const x = event.nativeEvent.offsetX;
    const isClick = drag.current !== null && Math.abs(x - drag.current.startX) < CLICK_PX;
    drag.current = null;
    if (!isClick) return;
    const iteration = iterationAt(picture, view, x, event.currentTarget.clientWidth);
    if (iteration !== null) onSelect(iteration);
  };
  return (
    <div className="flex">
      <LaneNames lanes={picture.lanes} />
      <div className="relative min-w-0 flex-1">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label="Steps over time. Arrow keys pan, plus and minus zoom, 0 shows everything. The same in words follows."
          className="block w-full cursor-crosshair touch-pan-y -outline-offset-2"
          style={{ height: picture.lanes.height }}
          data-from={Math.round(view.from)}
          data-to={Math.round(view.to)}
          onKeyDown={press}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = { x: event.nativeEvent.offsetX, startX: event.nativeEvent.offsetX };
            setHint(null);
          }}
          onPointerMove={move}
          onPointerUp={release}
          onPointerCancel={() => (drag.current = null)}
          onPointerLeave={() => setHint(null)}
        />
        {hint && <Hint {...hint} />}
        <ZoomButtons keys={keys} isWhole={zoom === null} isLive={isLive} />
      </div>
    </div>
  );
}

type Change = (next: (view: View) => View) => void;

const keysOf = (change: Change, showAll: () => void): Record<string, () => void> => ({
  ArrowLeft: () => change((view) => moved(view, -0.15)),
  ArrowRight: () => change((view) => moved(view, 0.15)),
  "+": () => change((view) => zoomed(view, 1 / STEP)),
  "=": () => change((view) => zoomed(view, 1 / STEP)),
  "-": () => change((view) => zoomed(view, STEP)),
  "0": showAll,
});

/** When everything is in view, the picture follows new steps. */
const limited = (view: View, { from, to }: Picture): Zoom => (view.from <= from && view.to >= to ? null : view);

type ZoomButtonsProps = { keys: Record<string, () => void>; isWhole: boolean; isLive: boolean };
const ZoomButtons = ({ keys, isWhole, isLive }: ZoomButtonsProps) => (
  <div className="absolute top-0.5 right-2 flex gap-1">
    <ZoomButton label="Zoom out" sign="−" onClick={keys["-"]} isDisabled={isWhole} />
    <ZoomButton label="Zoom in" sign="+" onClick={keys["+"]} />
    <ZoomButton
      label={isLive ? "Show all and follow" : "Show all"}
      sign="All"
      onClick={keys["0"]}
      isDisabled={isWhole}
    />
  </div>
);

type ZoomButtonProps = { label: string; sign: string; onClick: (() => void) | undefined; isDisabled?: boolean };
const ZoomButton = ({ label, sign, onClick, isDisabled = false }: ZoomButtonProps) => (
  <Button className="h-5! px-1.5! text-[11px]" aria-label={label} title={label} disabled={isDisabled} onClick={onClick}>
    {sign}
  </Button>
);

const LaneNames = ({ lanes: { steps, model, tool, rests, height } }: { lanes: Lanes }) => (
  <div aria-hidden className="relative hidden w-[70px] shrink-0 text-[11px] text-muted sm:block" style={{ height }}>
    {[steps, model, tool, rests].map(
      (lane) =>
        lane && (
          <span key={lane.label} className="absolute right-2" style={{ top: lane.top, lineHeight: `${lane.height}px` }}>
            {lane.label}
          </span>
        ),
    )}
  </div>
);

const Hint = ({ x, words }: { x: number; words: string }) => (
  <p
    aria-hidden
    data-testid="picture-hint"
    className="pointer-events-none absolute top-full z-10 max-w-72 -translate-x-1/2 rounded-md border border-line bg-raised px-2 py-1 text-[12px] shadow-md wrap-anywhere"
    style={{ left: `clamp(110px, ${x}px, calc(100% - 110px))` }}
  >
    {words}
  </p>
);
