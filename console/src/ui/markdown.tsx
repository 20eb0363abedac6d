import { useEffect, useMemo, useState } from "react";

type Render = (text: string) => string | null;
let loaded: Render | undefined;

/** Text as Markdown, made safe. Until the renderer is there, and where it cannot be, the text stands as it is. */
export function Markdown({ text }: { text: string }) {
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
  const html = useMemo(() => render?.(text) ?? null, [render, text]);
  if (html === null) return <div className="prose whitespace-pre-wrap">{text}</div>;
  return <div className="prose" dangerouslySetInnerHTML={{ __html: html }} />;
}
