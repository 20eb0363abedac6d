import type { ComponentProps, MouseEvent } from "react";
import { go } from "../app/router.ts";

/** A link within the console. Clicks with a modifier are left to the browser. */
export function Link({ href, onClick, ...rest }: ComponentProps<"a"> & { href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    event.preventDefault();
    go(href);
  };
  return <a href={href} onClick={follow} {...rest} />;
}
