import { type FormEvent, useState } from "react";
import { useSignal } from "../data/signal.ts";
import { currentToken, keepToken, tokenNeeded } from "../data/token.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { textIn } from "../ui/field-value.ts";
import { REQUIRED } from "../ui/read-object.ts";

/** Asks for the server's token where it needs one. */
export function TokenGate() {
  const isNeeded = useSignal(tokenNeeded);
  const [problem, setProblem] = useState<string>();
  if (!isNeeded) return null;
  const enter = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const token = textIn(form, "token").trim();
    setProblem(token === "" ? REQUIRED : undefined);
    if (token !== "") keepToken(token, form.has("remember"));
  };
  return (
    <Dialog
      title="This server needs a token"
      description="It is the value of EVERSTEP_TOKEN where the server runs."
      onClose={() => {}}
    >
      <form noValidate onSubmit={enter} className="flex flex-col gap-3">
        {currentToken() !== null && (
          <p role="alert" className="text-bad">
            The server refused this token.
          </p>
        )}
        <Field
          name="token"
          label="Token"
          schema={{ type: "string", format: "password" }}
          isRequired
          problem={problem}
        />
        <label className="flex items-center gap-2">
          <input type="checkbox" name="remember" />
          Remember it in this browser
        </label>
        <Button type="submit" look="primary">
          Continue
        </Button>
      </form>
    </Dialog>
  );
}
