import { useState } from "react";
import { ApiError } from "../../data/api.ts";
import { answer } from "../../data/commands.ts";
import { client } from "../../data/queries.ts";
import type { Problems } from "../../ui/schema-fields.tsx";
import { tell } from "../../ui/toast.tsx";

export type Answering = {
  state: "open" | "sending" | "sent";
  problems: Problems;
  setProblems: (problems: Problems) => void;
  send: (said: unknown) => Promise<void>;
};

/** Sends one answer. If somebody else answered first, it says so and refreshes the page. */
export function useAnswer(session_id: string, question_id: string): Answering {
  const [state, setState] = useState<Answering["state"]>("open");
  const [problems, setProblems] = useState<Problems>(new Map());
  const send = async (said: unknown) => {
    if (state === "sending") return;
    setState("sending");
    setProblems(new Map());
    try {
      await answer(session_id, question_id, said);
      setState("sent");
    } catch (error) {
      setState("open");
      if (error instanceof ApiError && error.status === 409) {
        tell("Somebody else has answered this question.", true);
        void client.invalidateQueries({ queryKey: ["summaries"] });
        void client.invalidateQueries({ queryKey: ["session", session_id] });
      } else setProblems(problemsIn(error));
    }
  };
  return { state, problems, setProblems, send };
}

function problemsIn(error: unknown): Problems {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ApiError) || error.errors.length === 0) return new Map([["", message]]);
  return new Map(error.errors.map((one) => [one.path.replace(/^answer\.?/, ""), one.message]));
}
