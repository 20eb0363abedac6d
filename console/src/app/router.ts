import { navigate, usePathname, useSearch } from "wouter/use-browser-location";

export const usePathParts = (): string[] => pathParts(usePathname());

/** The parts of a path, each decoded by itself: an id may contain a slash. */
export function pathParts(path: string): string[] {
  return path
    .split("/")
    .filter((part) => part !== "")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

type Query = Record<string, string | number | null | undefined>;

export function href(parts: string[], query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  const path = `/${parts.map(encodeURIComponent).join("/")}`;
  return search.size > 0 ? `${path}?${search}` : path;
}

export const sessionHref = (session_id: string, query: Query = {}): string => href(["sessions", session_id], query);
export const conversationHref = (conversation_id: string, query: Query = {}): string =>
  href(["conversations", conversation_id], query);

export const go = (to: string): void => navigate(to);

/** The query string, and a function that changes parts of it. */
export function useQueryState(): [URLSearchParams, (changes: Query, options?: { push?: boolean }) => void] {
  const search = new URLSearchParams(useSearch());
  const change = (changes: Query, { push = false } = {}) => {
    const next = new URLSearchParams(window.location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") next.delete(name);
      else next.set(name, String(value));
    }
    navigate(next.size > 0 ? `${window.location.pathname}?${next}` : window.location.pathname, { replace: !push });
  };
  return [search, change];
}
