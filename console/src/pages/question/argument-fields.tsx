import { useId, useState } from "react";

type Args = Readonly<Record<string, unknown>>;
type ArgumentFieldsProps = {
  args: Args;
  original: Args;
  onChange: (args: Args) => void;
  /** Whether a field is invalid. */
  onWrong: (isWrong: boolean) => void;
};

/** A field for each argument of a call: strings as text, the rest as JSON. */
export function ArgumentFields({ args, original, onChange, onWrong }: ArgumentFieldsProps) {
  const [wrong, setWrong] = useState<ReadonlySet<string>>(new Set());
  const mark = (name: string, isWrong: boolean) => {
    const next = new Set(wrong);
    if (isWrong) next.add(name);
    else next.delete(name);
    setWrong(next);
    onWrong(next.size > 0);
  };
  return Object.keys(args).map((name) => (
    <ArgumentField
      key={name}
      name={name}
      value={args[name]}
      isText={typeof original[name] === "string"}
      onChange={(value) => {
        mark(name, value === undefined);
        if (value !== undefined) onChange({ ...args, [name]: value });
      }}
    />
  ));
}

type ArgumentFieldProps = {
  name: string;
  value: unknown;
  isText: boolean;
  /** Undefined for invalid JSON. */
  onChange: (value: unknown) => void;
};

function ArgumentField({ name, value, isText, onChange }: ArgumentFieldProps) {
  const id = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const text = isText ? String(value) : (typed ?? JSON.stringify(value));
  const isWrong = !isText && typed !== null && jsonIn(typed) === undefined;
  const rows = Math.min(12, linesOf(text));
  return (
    <div className="sm:grid sm:grid-cols-[110px_1fr] sm:gap-x-3">
      <label htmlFor={id} className="mb-1 block pt-1.5 font-mono text-[12px] text-muted wrap-anywhere">
        {name}
      </label>
      <textarea
        id={id}
        className="field block max-h-80 resize-y font-mono text-[12px] leading-[1.45]"
        rows={rows}
        spellCheck={false}
        aria-invalid={isWrong}
        aria-describedby={`${id}-problem`}
        value={text}
        onChange={({ target: { value: next } }) => {
          setTyped(next);
          onChange(isText ? next : jsonIn(next));
        }}
      />
      <p id={`${id}-problem`} className="text-[12px] text-bad empty:hidden sm:col-start-2">
        {isWrong && "This is not JSON."}
      </p>
    </div>
  );
}

/** Characters that fit into a line of the field. */
const LINE = 56;

/** Lines that a text takes in the field, about. */
const linesOf = (text: string): number =>
  text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE)), 0);

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
