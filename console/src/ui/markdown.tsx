import { useEffect, useMemo, useState } from "react";
import { Signal, useSignal } from "../data/signal.ts";

type Render = (text: string) => string | null;
let loaded: Render | undefined;

const KEY = "everstep.raw";
/** Whether texts are shown without formatting. One setting for all switches. */
const isRaw = new Signal(localStorage.getItem(KEY) === "1");

function showRaw(isShown: boolean): void {
  localStorage.setItem(KEY, isShown ? "1" : "0");
  isRaw.set(isShown);
}

export function RawSwitch() {
  return (
    <label className="flex shrink-0 items-center gap-2 text-[12px] text-muted">
      <input
        type="checkbox"
        role="switch"
        checked={useSignal(isRaw)}
        onChange={(event) => showRaw(event.target.checked)}
      />
      Raw text
    </label>
  );
}

/** Longer texts are folded: a page full of them scrolls badly, and few people read 200 KB between two messages. */
const FOLDED_FROM = 16_000;
const SHOWN = 4000;

/** Text as Markdown. Long texts show their beginning and a button for the rest. */
export function Markdown({ text, folds = true }: { text: string; folds?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  if (!folds || text.length <= FOLDED_FROM) return <Rendered text={text} />;
  const end = text.lastIndexOf("\n", SHOWN);
  return (
    <div data-folded={!isWhole}>
      <Rendered text={isWhole ? text : `${text.slice(0, end > SHOWN / 2 ? end : SHOWN).toWellFormed()} …`} />
      <button type="button" className="mt-1 text-[12px] text-accent underline" onClick={() => setWhole(!isWhole)}>
        {isWhole ? "Show less" : `Show all ${Math.ceil(new Blob([text]).size / 1024).toLocaleString()} KB`}
      </button>
    </div>
  );
}

/** Sanitized Markdown. Shown as plain text until the renderer is loaded, where it fails, and in raw mode. */
function Rendered({ text }: { text: string }) {
  const raw = useSignal(isRaw);
  const [render, setRender] = useState<Render | undefined>(() => loaded);
  useEffect(() => {
    if (loaded) return;
    let isHere = true;
    void import("./markdown-html.ts").then(
      (module) => {
        loaded = module.toSafeHtml;
        if (isHere) setRender(() => module.toSafeHtml);
      },
      () => {},
    );
    return () => {
      isHere = false;
    };
  }, []);
  const html = useMemo(() => (raw ? null : (render?.(text) ?? null)), [raw, render, text]);
  if (html === null)
    return <div className={`prose whitespace-pre-wrap ${raw ? "font-mono text-[12px]" : ""}`}>{text}</div>;
  return <div className="prose" dangerouslySetInnerHTML={{ __html: html }} />;
}
