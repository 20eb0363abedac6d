import { type FormEvent, useState } from "react";
import { useSignal } from "../data/signal.ts";
import { currentToken, keepToken, tokenNeeded } from "../data/token.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";

/** Asks for the server's token where it wants one. */
export function TokenGate() {
  const isNeeded = useSignal(tokenNeeded);
  const [token, setToken] = useState("");
  const [remember, setRemember] = useState(false);
  if (!isNeeded) return null;
  const enter = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() !== "") keepToken(token.trim(), remember);
  };
  const wasWrong = currentToken() !== null;
  return (
    <Dialog
      title="This server needs a token"
      description="It is what EVERSTEP_TOKEN was set to where the server runs."
      onClose={() => {}}
    >
      <form onSubmit={enter} className="flex flex-col gap-3">
        {wasWrong && (
          <p role="alert" className="text-bad">
            The token that was given is not the right one.
          </p>
        )}
        <label>
          <span className="mb-1 block font-medium">Token</span>
          <input
            className="field"
            type="password"
            autoComplete="current-password"
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        <label className="flex items-center gap-2">
          <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.target.checked)} />
          Remember it in this browser
        </label>
        <Button type="submit" look="primary">
          Continue
        </Button>
      </form>
    </Dialog>
  );
}
