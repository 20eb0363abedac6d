/**
 * Scroll positions of pages, restored on Back and Forward.
 *
 * The element that scrolls has the attribute `data-scroll`. Positions are kept in memory by address: a reload starts at the top.
 */
const places = new Map<string, number>();
/** Content may still be loading; after this many milliseconds restoring gives up. */
const PATIENCE_MS = 3000;

const address = (): string => window.location.pathname + window.location.search;
let restoring: AbortController | undefined;

export function keepScrollPlaces(): void {
  const keep = ({ target }: Event): void => {
    if (restoring === undefined && target instanceof HTMLElement && target.dataset["scroll"] !== undefined)
      places.set(address(), target.scrollTop);
  };
  document.addEventListener("scroll", keep, { capture: true, passive: true });
  window.addEventListener("popstate", restore);
  // Scrolling by hand ends it.
  for (const type of ["wheel", "touchmove", "keydown"])
    window.addEventListener(type, () => endRestoring(), { passive: true });
}

function endRestoring(): void {
  restoring?.abort();
  restoring = undefined;
}

function restore(): void {
  endRestoring();
  const place = places.get(address());
  if (place === undefined || place === 0) return;
  const attempt = new AbortController();
  restoring = attempt;
  const until = performance.now() + PATIENCE_MS;
  const tryAgain = (): void => {
    if (attempt.signal.aborted) return;
    const box = document.querySelector<HTMLElement>("[data-scroll]");
    if (box) box.scrollTop = place;
    if ((box && Math.abs(box.scrollTop - place) < 2) || performance.now() > until) endRestoring();
    else requestAnimationFrame(tryAgain);
  };
  // The previous page is still rendered at this moment.
  requestAnimationFrame(() => requestAnimationFrame(tryAgain));
}
