import type { ReactNode } from "react";
import type { Session } from "../../data/queries.ts";
import type { Timeline } from "../../data/timeline.ts";
import { Empty } from "../../ui/empty.tsx";
import { GraphTab } from "../graph/graph-tab-loader.tsx";
import { About } from "./about.tsx";
import { Children } from "./children.tsx";
import { NowPanel } from "./now/now-panel.tsx";
import { StepPicture } from "./picture/step-picture.tsx";
import { Receipts } from "./receipts.tsx";
import { SessionPlots } from "./session-plots.tsx";
import { StepDetail } from "./step-detail.tsx";

export type TabProps = {
  session: Session;
  timeline: Timeline;
  /** The selected step. */
  iteration: number | null;
  onIteration: (iteration: number) => void;
};

export type SessionTab = {
  /** Value of `?tab=` in the address. */
  id: string;
  label: string;
  /** Hidden unless selected. */
  isHidden?: (facts: { hasChildren: boolean }) => boolean;
  /** On narrow screens only: elsewhere its content is always visible. */
  isNarrowOnly?: true;
  render: (props: TabProps) => ReactNode;
};

/** The default tab. */
export const FIRST_TAB = "now";
/** The list of steps, which is a tab on narrow screens. */
export const STEPS_TAB = "steps";

/** The tabs of a session, in order. */
export const SESSION_TABS: readonly SessionTab[] = [
  { id: FIRST_TAB, label: "Now", render: (props) => <NowPanel {...props} /> },
  { id: STEPS_TAB, label: "Steps", isNarrowOnly: true, render: () => null },
  {
    id: "picture",
    label: "Picture",
    isNarrowOnly: true,
    render: ({ session, timeline, iteration, onIteration }) => (
      <StepPicture
        key={session.session_id}
        session={session}
        timeline={timeline}
        selected={iteration}
        onSelect={onIteration}
      />
    ),
  },
  {
    id: "step",
    label: "Step",
    render: ({ iteration, ...props }) =>
      iteration === null ? (
        <Empty title="No step selected">Select one in the list of steps, or press j or k.</Empty>
      ) : (
        <StepDetail iteration={iteration} {...props} />
      ),
  },
  {
    id: "graph",
    label: "Graph",
    render: ({ session, onIteration }) => <GraphTab session={session} onIteration={onIteration} />,
  },
  {
    id: "receipts",
    label: "Receipts",
    render: ({ session, onIteration }) => <Receipts session_id={session.session_id} onIteration={onIteration} />,
  },
  {
    id: "children",
    label: "Children",
    isHidden: ({ hasChildren }) => !hasChildren,
    render: ({ session, onIteration }) => <Children session_id={session.session_id} onIteration={onIteration} />,
  },
  { id: "plots", label: "Plots", render: ({ session }) => <SessionPlots session={session} /> },
  { id: "about", label: "About", render: ({ session }) => <About session={session} /> },
];
