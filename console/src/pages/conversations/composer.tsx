import { useState } from "react";
import { pathOf, post } from "../../data/api.ts";
import { myName } from "../../data/identity.ts";
import { readAgain, type SessionSummary } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { MessageField } from "../../ui/message-field.tsx";
import { attempt } from "../../ui/toast.tsx";
import { NARROW, useMedia } from "../../ui/use-media.ts";

type ComposerProps = { conversation_id: string; sessions: SessionSummary[]; isArchived: boolean };

/** Sends a message to everyone, or to selected agents. */
export function Composer({ conversation_id, sessions, isArchived }: ComposerProps) {
  const isTelephone = useMedia(NARROW);
  const [text, setText] = useState("");
  const [to, setTo] = useState<ReadonlySet<string>>(new Set());
  const [isUrgent, setUrgent] = useState(false);
  const listening = sessions.filter(({ status }) => status !== "done" && status !== "stopped");
  const addressed = listening.filter(({ session_id }) => to.has(session_id)).map(({ session_id }) => session_id);
  const send = async () => {
    if (text.trim() === "") return;
    const body = {
      user_id: myName.value,
      text: text.trim(),
      mode: isUrgent ? "now" : "next",
      ...(addressed.length > 0 ? { to: addressed } : {}),
    };
    if (!(await attempt(() => post(pathOf("conversations", conversation_id, "messages"), body)))) return;
    setText("");
    for (const { session_id } of sessions) void readAgain("actions", session_id);
  };
  const toggle = (id: string) => {
    const next = new Set(to);
    if (!next.delete(id)) next.add(id);
    setTo(next);
  };
  if (isArchived)
    return <p className="border-t border-line bg-surface px-4 py-3 text-muted">This conversation is archived.</p>;
  return (
    <form
      className="flex flex-col gap-2 border-t border-line bg-surface p-3"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <MessageField
        aria-label="Message"
        placeholder={isTelephone ? "Write a message…" : "Write a message…  Ctrl Enter sends"}
        className="field resize-y"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onSend={() => void send()}
      />
      <div className="flex flex-wrap items-center gap-2">
        <fieldset className="flex flex-wrap items-center gap-1.5">
          <legend className="sr-only">Recipients</legend>
          <span className="text-muted">To</span>
          <Addressee label="everyone" isOn={addressed.length === 0} onToggle={() => setTo(new Set())} />
          {listening.map(({ session_id, agent_id }) => (
            <Addressee
              key={session_id}
              label={agent_id}
              isOn={to.has(session_id)}
              onToggle={() => toggle(session_id)}
            />
          ))}
        </fieldset>
        <label className="flex items-center gap-1.5" title="Interrupts running steps">
          <input type="checkbox" checked={isUrgent} onChange={(event) => setUrgent(event.target.checked)} />
          Now
        </label>
        <Button type="submit" look="primary" className="ml-auto" disabled={text.trim() === ""}>
          Send
        </Button>
      </div>
    </form>
  );
}

const Addressee = ({ label, isOn, onToggle }: { label: string; isOn: boolean; onToggle: () => void }) => (
  <button
    type="button"
    aria-pressed={isOn}
    onClick={onToggle}
    className="max-w-40 truncate rounded-full border border-line px-2.5 py-0.5 hover:bg-sunken aria-pressed:border-accent aria-pressed:bg-accent-soft"
  >
    {label}
  </button>
);
