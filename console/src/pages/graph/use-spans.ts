import { useEffect, useState } from "react";
import type { Session } from "../../data/queries.ts";
import { Signal, useSignal } from "../../data/signal.ts";
import { Spans, type SpansState } from "../../data/spans.ts";

const NOTHING_YET = new Signal<SpansState>({ spans: [], isLoading: true, error: null });

/** The spans of a session's steps, growing with it. */
export function useSpans({ session_id, iteration, updated_at }: Session): SpansState {
  const [spans, setSpans] = useState<Spans | null>(null);
  useEffect(() => {
    const opened = new Spans(session_id);
    setSpans(opened);
    void opened.open(iteration);
    return () => opened.close();
    // Opened once; later iterations are read as the session moves on.
    // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  }, [session_id]);
  useEffect(() => {
    if (updated_at !== "") spans?.renew();
  }, [spans, updated_at]);
  return useSignal(spans?.state ?? NOTHING_YET);
}
