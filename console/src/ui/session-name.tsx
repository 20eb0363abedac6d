import { shortId } from "./format.ts";

/** A session by its agent, with the end of its id, since an agent may have many. */
export const SessionName = ({ agent_id, session_id }: { agent_id: string | undefined; session_id: string }) => (
  <>
    {agent_id}{" "}
    <span title={session_id} className="ml-1 font-mono text-[11px] font-normal text-muted">
      {shortId(session_id)}
    </span>
  </>
);
