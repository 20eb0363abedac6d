import type { Session } from "../../data/queries.ts";
import { Json } from "../../ui/json.tsx";
import { Time, Until } from "../../ui/time.tsx";
import { ChoiceForm, toolCallIn } from "./choice-form.tsx";
import { SchemaForm } from "./schema-form.tsx";
import { TextForm } from "./text-form.tsx";
import { useAnswer } from "./use-answer.ts";

type Asking = Pick<Session, "session_id" | "question" | "wake_at">;
export type Question = NonNullable<Session["question"]>;

/** A session's question and its answer form. */
export function QuestionView({ session: { session_id, question, wake_at } }: { session: Asking }) {
  if (question === null) return null;
  return (
    <div role="group" aria-label="Question" data-testid="question" className="flex flex-col gap-3">
      <div className="rounded-md bg-warn-soft px-3 py-2">
        <p className="whitespace-pre-wrap text-ink wrap-anywhere">{wordsOf(question)}</p>
        {wake_at !== null && (
          <p className="mt-1 text-[12px] text-warn">
            Waiting for an answer until <Time at={wake_at} withDate /> (<Until at={wake_at} />
            ).
          </p>
        )}
      </div>
      {/* A new question gets an empty form. */}
      <AnswerForm key={question.question_id} session_id={session_id} question={question} />
    </div>
  );
}

/** An agent's request for approval has the arguments too, for those who answer elsewhere; here the form shows them. */
function wordsOf({ text, about }: Question): string {
  const call = toolCallIn(about);
  return call && text.startsWith(`May I run ${call.tool} with `) ? `May I run ${call.tool}?` : text;
}

function AnswerForm({ session_id, question }: { session_id: string; question: Question }) {
  const answering = useAnswer(session_id, question.question_id);
  const problem = answering.problems.get("");
  return (
    <>
      {question.choices !== null ? (
        <ChoiceForm question={question} choices={question.choices} answering={answering} />
      ) : (
        <>
          {question.about !== null && <Json value={question.about} label="What it is about" />}
          {question.schema !== null ? (
            <SchemaForm schema={question.schema} answering={answering} />
          ) : (
            <TextForm answering={answering} />
          )}
        </>
      )}
      {problem !== undefined && (
        <p role="alert" className="text-bad wrap-anywhere">
          {problem}
        </p>
      )}
      {answering.state === "sent" && (
        <p role="status" className="text-muted">
          Answer sent. The next step uses it.
        </p>
      )}
    </>
  );
}
