const PATHS = {
  list: "M3 5h18M3 12h18M3 19h18",
  inbox: "M3 13h5l2 3h4l2-3h5M5 5h14l2 8v6H3v-6z",
  chat: "M4 5h16v11H9l-5 4z",
  agents: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c1-5 15-5 16 0",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5",
  gauge: "M4 18a9 9 0 1 1 16 0M12 14l4-5",
  steps: "M4 19h5v-5h5V9h6",
  plus: "M12 5v14M5 12h14",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7-12 7z",
  stop: "M6 6h12v12H6z",
  fork: "M6 4v8c0 4 12 0 12 6v2M6 12v8M18 4v6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  left: "M15 5l-7 7 7 7",
  bell: "M6 17h12l-1.5-3v-4a4.5 4.5 0 0 0-9 0v4zM10 20.5h4",
  dollar: "M12 3v18M16.5 7.5C15 5.5 8 5 8 9s8.5 2 8.5 6.5S8.5 19 7.5 16",
  wrench: "M14 7a4 4 0 0 1 5-4l-2.5 3 1.5 1.5L21 5a4 4 0 0 1-5 5l-8.5 9a2 2 0 0 1-3-3z",
  book: "M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2zM5 17h14M9 8h6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  send: "M4 12l16-8-6 16-3-7z",
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({ name, className = "size-4" }: { name: IconName; className?: string }) {
  return (
    <svg
      aria-hidden
      viewBox="0 0 24 24"
      className={`shrink-0 ${className}`}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.9"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
