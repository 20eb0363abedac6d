import { type Session, useChildren } from "../../data/queries.ts";
import { Empty } from "../../ui/empty.tsx";
import { useMedia } from "../../ui/use-media.ts";
import { About } from "./about.tsx";
import { Children } from "./children.tsx";
import { Receipts } from "./receipts.tsx";
import { SessionPlots } from "./session-plots.tsx";
import { StepDetail } from "./step-detail.tsx";

const TABS = [
  { tab: null, label: "Timeline" },
  { tab: "step", label: "Step" },
  { tab: "receipts", label: "Receipts" },
  { tab: "children", label: "Children" },
  { tab: "plots", label: "Plots" },
  { tab: "about", label: "About" },
] as const;

type SidePanelProps = {
  session: Session;
  tab: string | null;
  iteration: number | null;
  onTab: (tab: string | null) => void;
  onIteration: (iteration: number) => void;
};

/** What stands beside the timeline; on a narrow screen, instead of it. */
export function SidePanel({ session, tab, iteration, onTab, onIteration }: SidePanelProps) {
  const shown = tab ?? "receipts";
  const hasChildren = (useChildren(session.session_id).data?.total ?? 0) > 0;
  const isNarrow = useMedia("(max-width: 767px)");
  return (
    <aside
      aria-label="Details"
      className={`order-first flex min-h-0 flex-col border-line bg-canvas md:order-none md:w-[46%] md:max-w-[640px] md:flex-none md:border-l ${tab === null ? "flex-none" : "flex-1"}`}
    >
      <div
        role="tablist"
        aria-label="Details"
        className="flex gap-1 overflow-x-auto border-b border-line bg-surface px-2 pt-1.5"
      >
        {TABS.filter(({ tab: name }) => name !== "children" || hasChildren || shown === "children").map(
          ({ tab: name, label }) => (
            <button
              key={label}
              type="button"
              role="tab"
              aria-selected={name === (isNarrow ? tab : shown)}
              onClick={() => onTab(name)}
              className={`border-b-2 border-transparent px-2.5 py-1.5 font-medium text-muted hover:text-ink aria-selected:border-accent aria-selected:text-ink ${name === null ? "md:hidden" : ""}`}
            >
              {label}
            </button>
          ),
        )}
      </div>
      <div
        role="tabpanel"
        aria-label={shown}
        tabIndex={0}
        className={`min-h-0 flex-1 overflow-y-auto -outline-offset-2 ${tab === null ? "hidden md:block" : ""}`}
      >
        {shown === "step" && iteration === null && (
          <Empty title="No step chosen">Choose one in the timeline, or press j and k.</Empty>
        )}
        {shown === "step" && iteration !== null && (
          <StepDetail session={session} iteration={iteration} onIteration={onIteration} />
        )}
        {shown === "receipts" && <Receipts session_id={session.session_id} onIteration={onIteration} />}
        {shown === "children" && <Children session_id={session.session_id} onIteration={onIteration} />}
        {shown === "plots" && <SessionPlots session={session} />}
        {shown === "about" && <About session={session} />}
      </div>
    </aside>
  );
}
