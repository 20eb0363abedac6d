import type { ComponentProps } from "react";
import { NARROW, useMedia } from "./use-media.ts";

/** A message field: Ctrl or ⌘ with Enter sends; on phones, Enter alone. */
export function MessageField({ onSend, ...rest }: ComponentProps<"textarea"> & { onSend: () => void }) {
  const isTelephone = useMedia(NARROW);
  return (
    <textarea
      rows={2}
      enterKeyHint={isTelephone ? "send" : "enter"}
      onKeyDown={(event) => {
        // Enter also confirms a suggestion of an input method.
        if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
        if (!(event.ctrlKey || event.metaKey || (isTelephone && !event.shiftKey))) return;
        event.preventDefault();
        onSend();
      }}
      {...rest}
    />
  );
}
