import { Suspense, useEffect, useRef } from "react";
import { useSignal } from "../data/signal.ts";
import { tokenNeeded } from "../data/token.ts";
import { SessionsPage } from "../pages/sessions/sessions-page.tsx";
import { Boundary } from "../ui/boundary.tsx";
import { Empty } from "../ui/empty.tsx";
import { Link } from "../ui/link.tsx";
import { setPageTitle } from "../ui/page-title.ts";
import { Toasts } from "../ui/toast.tsx";
import { Attention } from "./attention.tsx";
import { ConnectionBanner } from "./connection-banner.tsx";
import { HoldBanner } from "./hold-banner.tsx";
import { Navigation } from "./navigation.tsx";
import { ComparePage, ConversationsPage, loadAllPages, MonikersPage, plainPage, SessionPage } from "./pages.tsx";
import { PLACES, START } from "./places.ts";
import { usePathParts } from "./router.ts";
import { Shortcuts } from "./shortcuts.tsx";
import { TokenGate } from "./token-gate.tsx";

const TITLES: ReadonlyMap<string, string> = new Map([...PLACES, START].map(({ page, label }) => [page, label]));

export function App() {
  useEffect(() => {
    const timer = setTimeout(loadAllPages, 1000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <>
      <a
        href="#main"
        className="sr-only z-50 rounded bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:absolute focus:m-2"
      >
        Skip to content
      </a>
      <div className="flex h-full flex-col md:flex-row">
        <Navigation />
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <ConnectionBanner />
          <HoldBanner />
          <Main />
        </div>
      </div>
      <Attention />
      <Toasts />
      <Shortcuts />
      <TokenGate />
    </>
  );
}

function Main() {
  const [page = "sessions", first, second] = usePathParts();
  const main = useRef<HTMLElement>(null);
  // Once a token is given, what was refused without it is read again.
  const isTokenNeeded = useSignal(tokenNeeded);
  useEffect(() => {
    // Pages about one thing set their own title once they have read it.
    if (first === undefined) setPageTitle(TITLES.get(page) ?? "Page not found");
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
  if (page === "monikers") return <MonikersPage name={first ?? null} />;
  if (page === "compare") return <ComparePage left={first} right={second} />;
  const Page = plainPage(page);
  if (Page) return <Page />;
  return (
    <Empty title="Page not found" isPage>
      <Link href="/" className="text-accent underline">
        Show all sessions
      </Link>
    </Empty>
  );
}

const Broken = () => (
  <Empty title="Something went wrong on this page" isPage>
    <button type="button" className="text-accent underline" onClick={() => window.location.reload()}>
      Reload it
    </button>
  </Empty>
);
