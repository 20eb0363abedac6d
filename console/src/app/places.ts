import type { IconName } from "../ui/icon.tsx";

export type Place = {
  /** First part of its address. */
  page: string;
  path: string;
  label: string;
  icon: IconName;
  /** Pressed after g. */
  key: string;
  /** Shown in the bar on narrow screens; the others are under "More". */
  isInBar?: true;
};

/** Not in the menu: the list of sessions has a button for it. */
export const START = { page: "start", path: "/start", label: "Start an agent", icon: "plus" } as const;

/** The console's pages, for the menu, shortcuts, palette and titles. */
export const PLACES: readonly Place[] = [
  { page: "sessions", path: "/", label: "Sessions", icon: "list", key: "s", isInBar: true },
  { page: "inbox", path: "/inbox", label: "Needs me", icon: "inbox", key: "n", isInBar: true },
  { page: "conversations", path: "/conversations", label: "Conversations", icon: "chat", key: "c", isInBar: true },
  { page: "agents", path: "/agents", label: "Agents", icon: "agents", key: "a" },
  { page: "search", path: "/search", label: "Search", icon: "search", key: "f", isInBar: true },
  { page: "costs", path: "/costs", label: "Costs", icon: "dollar", key: "d" },
  { page: "monikers", path: "/monikers", label: "Monikers", icon: "book", key: "m" },
  { page: "tools", path: "/tools", label: "Tools", icon: "wrench", key: "t" },
  { page: "webhooks", path: "/webhooks", label: "Webhooks", icon: "send", key: "w" },
  { page: "system", path: "/system", label: "System", icon: "gauge", key: "y" },
];
