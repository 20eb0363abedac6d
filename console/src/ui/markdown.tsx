import { useEffect, useMemo, useState } from "react";
import { Signal, useSignal } from "../data/signal.ts";

type Render = (text: string) => string | null;
let loaded: Render | undefined;

const KEY = "everstep.raw";
/** Whether the reader wants texts as they were said, without formatting; one choice for every place that has the switch. */
const isRaw = new Signal(localStorage.getItem(KEY) === "1");

function showRaw(wanted: boolean): void {
  localStorage.setItem(KEY, wanted ? "1" : "0");
  isRaw.set(wanted);
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

/** Text as Markdown, made safe. Until the renderer is there, where it cannot be, and where raw text is wanted, it stands as it is. */
export function Markdown({ text }: { text: string }) {
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
