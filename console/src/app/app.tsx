import { type ComponentType, lazy, Suspense, useEffect, useRef } from "react";
import { useSignal } from "../data/signal.ts";
import { tokenNeeded } from "../data/token.ts";
import { SessionsPage } from "../pages/sessions/sessions-page.tsx";
import { Boundary } from "../ui/boundary.tsx";
import { Empty } from "../ui/empty.tsx";
import { Link } from "../ui/link.tsx";
import { Toasts } from "../ui/toast.tsx";
import { ConnectionBanner } from "./connection-banner.tsx";
import { HoldBanner } from "./hold-banner.tsx";
import { Navigation } from "./navigation.tsx";
import { usePathParts } from "./router.ts";
import { Shortcuts } from "./shortcuts.tsx";
import { TokenGate } from "./token-gate.tsx";

const LOADERS = {
  session: () => import("../pages/session/session-page.tsx"),
  agents: () => import("../pages/agents-page.tsx"),
  conversations: () => import("../pages/conversations/conversations-page.tsx"),
  inbox: () => import("../pages/inbox/inbox-page.tsx"),
  start: () => import("../pages/start/start-page.tsx"),
  search: () => import("../pages/search-page.tsx"),
  system: () => import("../pages/system-page.tsx"),
  webhooks: () => import("../pages/webhooks/webhooks-page.tsx"),
  compare: () => import("../pages/compare/compare-page.tsx"),
};
const SessionPage = lazy(LOADERS.session);
const ConversationsPage = lazy(LOADERS.conversations);
const ComparePage = lazy(LOADERS.compare);

/** The other pages are fetched once the first one stands, so that a click does not wait for them. */
const fetchPages = (): void => {
  for (const load of Object.values(LOADERS)) load().catch(() => {});
};

const PAGES: Readonly<Record<string, ComponentType>> = {
  agents: lazy(LOADERS.agents),
  inbox: lazy(LOADERS.inbox),
  start: lazy(LOADERS.start),
  search: lazy(LOADERS.search),
  system: lazy(LOADERS.system),
  webhooks: lazy(LOADERS.webhooks),
};

const TITLES: Readonly<Record<string, string>> = {
  sessions: "Sessions",
  conversations: "Conversations",
  agents: "Agents",
  inbox: "Needs me",
  start: "Start an agent",
  search: "Search",
  system: "System",
  webhooks: "Webhooks",
};

export function App() {
  useEffect(() => {
    const timer = setTimeout(fetchPages, 1000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <>
      <a
        href="#main"
        className="sr-only z-50 rounded bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:absolute focus:m-2"
      >
        Skip to the page
      </a>
      <div className="flex h-full flex-col md:flex-row">
        <Navigation />
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <ConnectionBanner />
          <HoldBanner />
          <Main />
        </div>
      </div>
      <Toasts />
      <Shortcuts />
      <TokenGate />
    </>
  );
}

function Main() {
  const [page = "sessions", first, second] = usePathParts();
  const main = useRef<HTMLElement>(null);
  // What was refused without a token is asked for again with it.
  const isTokenNeeded = useSignal(tokenNeeded);
  useEffect(() => {
    // A page about one thing says which, once it is read.
    if (first === undefined) document.title = `${TITLES[page] ?? "No such page"} · Everstep`;
  }, [page, first]);
  return (
    <main id="main" ref={main} tabIndex={-1} className="flex min-h-0 flex-1 flex-col outline-none">
      <Boundary key={`${page} ${first} ${isTokenNeeded}`} fallback={<Broken />}>
        <Suspense fallback={<p className="p-6 text-muted">Loading…</p>}>{pageFor(page, first, second)}</Suspense>
      </Boundary>
    </main>
  );
}

function pageFor(page: string, first: string | undefined, second: string | undefined) {
  if (page === "sessions")
    return first === undefined ? <SessionsPage /> : <SessionPage key={first} session_id={first} />;
  if (page === "conversations") return <ConversationsPage conversation_id={first ?? null} />;
  if (page === "compare" && first !== undefined && second !== undefined)
    return <ComparePage left={first} right={second} />;
  const Page = PAGES[page];
  if (Page) return <Page />;
  return (
    <Empty title="There is no such page">
      <Link href="/" className="text-accent underline">
        Go to the sessions
      </Link>
    </Empty>
  );
}

const Broken = () => (
  <Empty title="This page met a fault">
    <button type="button" className="text-accent underline" onClick={() => window.location.reload()}>
      Load it again
    </button>
  </Empty>
);
