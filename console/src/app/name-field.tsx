import { myName, rename } from "../data/identity.ts";
import { useSignal } from "../data/signal.ts";

/** The name that the reader's messages are sent under. */
export function NameField() {
  const name = useSignal(myName);
  return (
    <label className="block">
      <span className="px-1 text-[11px] text-muted">You are</span>
      <input
        key={name}
        className="field h-7"
        defaultValue={name}
        maxLength={200}
        onBlur={(event) => rename(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
      />
    </label>
  );
}
