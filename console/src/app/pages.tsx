import { type ComponentType, lazy } from "react";
import { readSession } from "../data/queries.ts";
import { pathParts } from "./router.ts";

type Loader<Props> = () => Promise<{ default: ComponentType<Props> }>;
type Page<Props> = { Page: ComponentType<Props>; load: () => Promise<unknown> };

/**
 * A page in a chunk of its own. Once it is loaded it renders without suspending: React holds back the content of a suspended
 * component for 300 ms, so that fallbacks do not flash.
 */
function lazyPage<Props extends object>(loader: Loader<Props>): Page<Props> {
  let Loaded: ComponentType<Props> | undefined;
  const load = async () => {
    const module = await loader();
    Loaded = module.default;
    return module;
  };
  const Lazy = lazy(load) as unknown as ComponentType<Props>;
  return { load, Page: (props) => (Loaded ? <Loaded {...props} /> : <Lazy {...props} />) };
}

/** By the first part of the address. The list of sessions is in the entry chunk. */
const PAGES = {
  sessions: lazyPage(() => import("../pages/session/session-page.tsx")),
  conversations: lazyPage(() => import("../pages/conversations/conversations-page.tsx")),
  monikers: lazyPage(() => import("../pages/monikers/monikers-page.tsx")),
  compare: lazyPage(() => import("../pages/compare/compare-page.tsx")),
};
const PLAIN_PAGES = {
  agents: lazyPage(() => import("../pages/agents-page.tsx")),
  inbox: lazyPage(() => import("../pages/inbox/inbox-page.tsx")),
  start: lazyPage(() => import("../pages/start/start-page.tsx")),
  search: lazyPage(() => import("../pages/search-page.tsx")),
  system: lazyPage(() => import("../pages/system-page.tsx")),
  webhooks: lazyPage(() => import("../pages/webhooks/webhooks-page.tsx")),
  costs: lazyPage(() => import("../pages/costs-page.tsx")),
  tools: lazyPage(() => import("../pages/tools/tools-page.tsx")),
};
const ALL: ReadonlyMap<string, Pick<Page<never>, "load">> = new Map(Object.entries({ ...PAGES, ...PLAIN_PAGES }));

export const SessionPage = PAGES.sessions.Page;
export const ConversationsPage = PAGES.conversations.Page;
export const MonikersPage = PAGES.monikers.Page;
export const ComparePage = PAGES.compare.Page;

/** A page without parameters. */
export const plainPage = (name: string): ComponentType | undefined =>
  Object.hasOwn(PLAIN_PAGES, name) ? PLAIN_PAGES[name as keyof typeof PLAIN_PAGES].Page : undefined;

/** Loads the page at the current address, and what it reads first, before anything renders. */
export async function loadFirstPage(): Promise<void> {
  const [name = "sessions", first] = pathParts(window.location.pathname);
  if (name === "sessions" && first === undefined) return;
  if (name === "sessions" && first !== undefined) void readSession(first);
  await ALL.get(name)
    ?.load()
    .catch(() => {}); // Rendering tries again and shows the failure.
}

/** Loads the other pages once the first one is shown, so that a click does not wait for them. */
export function loadAllPages(): void {
  for (const { load } of ALL.values()) load().catch(() => {});
}
