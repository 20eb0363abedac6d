import { Fragment, useMemo } from "react";
import { highlight, type Token } from "./highlight.ts";

const COLORS: Readonly<Record<Token["kind"], string>> = {
  comment: "text-muted italic",
  string: "text-good",
  number: "text-warn",
  keyword: "text-accent",
  plain: "",
};

/** Highlighted code. */
export function Code({ text }: { text: string }) {
  const tokens = useMemo(() => highlight(text), [text]);
  return (
    <code className="block font-mono text-[12px] leading-[1.5] whitespace-pre-wrap wrap-anywhere" data-testid="code">
      {tokens.map(({ kind, text: part }, index) =>
        kind === "plain" ? (
          // Tokens of a text keep their positions.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <Fragment key={index}>{part}</Fragment>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <span key={index} className={COLORS[kind]} data-token={kind}>
            {part}
          </span>
        ),
      )}
    </code>
  );
}
