import { connection } from "../data/live.ts";
import { useNeedsMe } from "../data/queries.ts";
import { useSignal } from "../data/signal.ts";
import { Button } from "../ui/button.tsx";
import { count } from "../ui/format.ts";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Link } from "../ui/link.tsx";
import { NameField } from "./name-field.tsx";
import { usePathParts } from "./router.ts";
import { openHelp } from "./shortcuts.tsx";

const PLACES: { page: string; path: string; label: string; icon: IconName }[] = [
  { page: "sessions", path: "/", label: "Sessions", icon: "list" },
  { page: "inbox", path: "/inbox", label: "Needs me", icon: "inbox" },
  { page: "conversations", path: "/conversations", label: "Conversations", icon: "chat" },
  { page: "agents", path: "/agents", label: "Agents", icon: "agents" },
  { page: "search", path: "/search", label: "Search", icon: "search" },
  { page: "webhooks", path: "/webhooks", label: "Webhooks", icon: "send" },
  { page: "system", path: "/system", label: "System", icon: "gauge" },
];
/** On a narrow screen the others are enough; agents are a way to look at sessions. */
const WIDE_ONLY = ["agents", "webhooks"];

const CONNECTION = {
  connecting: { color: "text-muted", text: "connecting" },
  connected: { color: "text-good", text: "live" },
  lost: { color: "text-warn", text: "reconnecting" },
} as const;

export function Navigation() {
  const [page = "sessions"] = usePathParts();
  const waiting = useNeedsMe().data?.total ?? 0;
  return (
    <nav
      aria-label="Main"
      className="order-last flex shrink-0 border-t border-line bg-surface md:order-first md:w-[196px] md:flex-col md:gap-0.5 md:border-t-0 md:border-r md:p-3"
    >
      <Link href="/" className="mb-3 hidden items-center gap-2 px-2 py-1 text-[15px] font-semibold md:flex">
        <Icon name="steps" className="size-5 text-accent" />
        Everstep
      </Link>
      {PLACES.map(({ page: name, path, label, icon }) => (
        <Link
          key={name}
          href={path}
          aria-current={page === name ? "page" : undefined}
          className={`relative flex-1 flex-col items-center gap-0.5 px-1 py-2 text-[11px] font-medium text-muted hover:bg-sunken hover:text-ink aria-[current]:text-accent md:flex md:flex-none md:flex-row md:gap-2.5 md:rounded-md md:px-2 md:py-1.5 md:text-[13px] md:aria-[current]:bg-accent-soft ${WIDE_ONLY.includes(name) ? "hidden" : "flex"}`}
        >
          <Icon name={icon} className="size-[18px] md:size-4" />
          <span className="max-w-full truncate">{label}</span>
          {name === "inbox" && waiting > 0 && (
            <span
              data-testid="needs-me-count"
              className="absolute top-1 right-[22%] rounded-full bg-bad px-1.5 text-[11px] leading-[17px] font-semibold text-surface md:static md:ml-auto"
            >
              {count(waiting)}
              <span className="sr-only"> waiting</span>
            </span>
          )}
        </Link>
      ))}
      <div className="mt-auto hidden flex-col gap-2 px-1 pt-3 md:flex">
        <NameField />
        <div className="flex items-center justify-between">
          <ConnectionState />
          <Button look="ghost" className="h-6 px-1.5" onClick={openHelp} aria-label="Keyboard shortcuts">
            <kbd className="font-sans">?</kbd>
          </Button>
        </div>
      </div>
    </nav>
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
