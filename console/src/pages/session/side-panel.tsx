import { useChildren } from "../../data/queries.ts";
import { NARROW, useMedia } from "../../ui/use-media.ts";
import { FIRST_TAB, SESSION_TABS, STEPS_TAB, type TabProps } from "./session-tabs.tsx";

type SidePanelProps = TabProps & {
  /** From the address; null is the default. */
  tab: string | null;
  onTab: (tab: string) => void;
};

/** The panel beside the list of steps; on narrow screens, instead of it. */
export function SidePanel({ tab, onTab, ...props }: SidePanelProps) {
  const { session } = props;
  const hasChildren = (useChildren(session.session_id).data?.total ?? 0) > 0;
  const isNarrow = useMedia(NARROW);
  const chosen =
    SESSION_TABS.find(({ id, isNarrowOnly }) => id === tab && (isNarrow || !isNarrowOnly))?.id ?? FIRST_TAB;
  const listed = SESSION_TABS.filter(
    ({ id, isHidden, isNarrowOnly }) =>
      (isNarrow || !isNarrowOnly) && (id === chosen || isHidden?.({ hasChildren }) !== true),
  );
  const isList = chosen === STEPS_TAB;
  return (
    <aside
      aria-label="Details"
      className={`order-first flex min-h-0 flex-col border-line bg-canvas md:order-none md:w-[48%] md:max-w-[720px] md:flex-none md:border-l ${isList ? "flex-none" : "flex-1"}`}
    >
      <div
        role="tablist"
        aria-label="Details"
        className="flex shrink-0 gap-1 overflow-x-auto border-b border-line bg-surface px-2 pt-1.5"
      >
        {listed.map(({ id, label }) => (
          <button
            key={id}
            type="button"
            role="tab"
            aria-selected={id === chosen}
            onClick={() => onTab(id)}
            className="shrink-0 border-b-2 border-transparent px-2.5 py-1.5 font-medium text-muted hover:text-ink aria-selected:border-accent aria-selected:text-ink"
          >
            {label}
            {id === FIRST_TAB && session.question !== null && chosen !== id && <AsksMark />}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        aria-label={chosen}
        tabIndex={0}
        className={`min-h-0 flex-1 overflow-y-auto -outline-offset-2 ${isList ? "hidden" : ""}`}
      >
        {SESSION_TABS.find(({ id }) => id === chosen)?.render(props)}
      </div>
    </aside>
  );
}

/** Marks the tab that has a question. */
const AsksMark = () => (
  <>
    <span aria-hidden className="ml-1.5 inline-block size-2 rounded-full bg-warn" />
    <span className="sr-only"> (it asks something)</span>
  </>
);
