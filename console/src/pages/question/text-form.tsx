import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { MessageField } from "../../ui/message-field.tsx";
import type { Answering } from "./use-answer.ts";

/** A free-text answer. */
export function TextForm({ answering }: { answering: Answering }) {
  const [text, setText] = useState("");
  const canSend = text.trim() !== "" && answering.state === "open";
  const send = () => {
    if (canSend) void answering.send(text.trim());
  };
  return (
    <form
      className="flex flex-wrap items-end gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <MessageField
        data-answer
        className="field min-w-40 flex-1 resize-y"
        aria-label="Your answer"
        placeholder="Your answer…"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onSend={send}
      />
      <Button type="submit" look="primary" disabled={!canSend}>
        Answer
      </Button>
    </form>
  );
}
