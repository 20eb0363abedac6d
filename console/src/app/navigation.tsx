import { useState } from "react";
import { connection } from "../data/live.ts";
import { useNeedsMe } from "../data/queries.ts";
import { useSignal } from "../data/signal.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { count } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { Link } from "../ui/link.tsx";
import { NameField } from "./name-field.tsx";
import { PLACES, type Place, START } from "./places.ts";
import { usePathParts } from "./router.ts";
import { openHelp, openPalette } from "./shortcuts.tsx";

const CONNECTION = {
  connecting: { color: "text-muted", text: "connecting" },
  connected: { color: "text-good", text: "live" },
  lost: { color: "text-warn", text: "reconnecting" },
} as const;

export function Navigation() {
  const [page = "sessions"] = usePathParts();
  const [isMoreOpen, setMoreOpen] = useState(false);
  const isUnderMore = PLACES.some((place) => place.page === page && !place.isInBar);
  return (
    <nav
      aria-label="Main"
      className="order-last flex shrink-0 border-t border-line bg-surface md:order-first md:w-[196px] md:flex-col md:gap-0.5 md:border-t-0 md:border-r md:p-3"
    >
      <Link href="/" className="mb-3 hidden items-center gap-2 px-2 py-1 text-[15px] font-semibold md:flex">
        <Icon name="steps" className="size-5 text-accent" />
        Everstep
      </Link>
      <button
        type="button"
        onClick={openPalette}
        className="mb-2 hidden items-center justify-between rounded-md border border-line px-2 py-1 text-muted hover:bg-sunken md:flex"
      >
        Find…
        <kbd aria-hidden className="font-sans text-[11px]">
          Ctrl K
        </kbd>
      </button>
      {PLACES.map((place) => (
        <PlaceLink key={place.page} place={place} isHere={page === place.page} />
      ))}
      <button
        type="button"
        aria-haspopup="dialog"
        aria-expanded={isMoreOpen}
        onClick={() => setMoreOpen(true)}
        className={`flex flex-col md:hidden ${ITEM} ${isUnderMore ? "text-accent" : ""}`}
      >
        <Icon name="more" className="size-[18px]" />
        More
      </button>
      <div className="mt-auto hidden flex-col gap-2 px-1 pt-3 md:flex">
        <NameField />
        <div className="flex items-center justify-between">
          <ConnectionState />
          <Button look="ghost" className="h-6 px-1.5" onClick={openHelp} aria-label="Keyboard shortcuts">
            <kbd className="font-sans">?</kbd>
          </Button>
        </div>
      </div>
      {isMoreOpen && <More page={page} onClose={() => setMoreOpen(false)} />}
    </nav>
  );
}

const ITEM =
  "flex-1 items-center gap-0.5 px-1 py-2 text-[11px] font-medium text-muted hover:bg-sunken hover:text-ink aria-[current]:text-accent";

function PlaceLink({ place: { page, path, label, icon, isInBar }, isHere }: { place: Place; isHere: boolean }) {
  return (
    <Link
      href={path}
      aria-current={isHere ? "page" : undefined}
      className={`relative flex-col md:flex md:flex-none md:flex-row md:gap-2.5 md:rounded-md md:px-2 md:py-1.5 md:text-[13px] md:aria-[current]:bg-accent-soft ${ITEM} ${isInBar ? "flex" : "hidden"}`}
    >
      <Icon name={icon} className="size-[18px] md:size-4" />
      <span className="max-w-full truncate">{label}</span>
      {page === "inbox" && <NeedsMeCount />}
    </Link>
  );
}

function NeedsMeCount() {
  const waiting = useNeedsMe().data?.total ?? 0;
  if (waiting === 0) return null;
  return (
    <span
      data-testid="needs-me-count"
      className="absolute top-1 right-[22%] rounded-full bg-bad px-1.5 text-[11px] leading-[17px] font-semibold text-surface md:static md:ml-auto"
    >
      {count(waiting)}
      <span className="sr-only"> waiting</span>
    </span>
  );
}

/** On narrow screens: the pages that the bar has no room for, and your name. */
function More({ page, onClose }: { page: string; onClose: () => void }) {
  return (
    <Dialog title="More" onClose={onClose}>
      <ul className="grid grid-cols-2 gap-2">
        {[...PLACES.filter(({ isInBar }) => !isInBar), START].map(({ page: name, path, label, icon }) => (
          <li key={name}>
            <Link
              href={path}
              onClick={onClose}
              aria-current={page === name ? "page" : undefined}
              className="panel flex min-h-11 items-center gap-2.5 px-3 font-medium hover:bg-sunken aria-[current]:bg-accent-soft aria-[current]:text-accent"
            >
              <Icon name={icon} />
              {label}
            </Link>
          </li>
        ))}
      </ul>
      <div className="mt-4 flex flex-col gap-2 border-t border-line pt-4">
        <Button
          onClick={() => {
            onClose();
            openPalette();
          }}
        >
          Find a session, an agent or a command…
        </Button>
        <NameField />
        <ConnectionState />
      </div>
    </Dialog>
  );
}

function ConnectionState() {
  const { color, text } = CONNECTION[useSignal(connection)];
  return (
    <span className={`flex items-center gap-1.5 px-1 text-[12px] ${color}`} data-testid="connection">
      <span aria-hidden className="size-2 rounded-full bg-current" />
      {text}
    </span>
  );
}
