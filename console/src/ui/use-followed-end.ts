import { type RefCallback, type RefObject, useCallback, useRef } from "react";

type FollowedEnd = {
  /** For an element that has the virtual list as its only child. */
  frame: RefCallback<HTMLElement>;
  isFollowing: RefObject<boolean>;
  /** To be told where the list is scrolled to, and how much lies below what is in view. */
  scrolledTo: (offset: number, below: number) => void;
};

const NEAR = 80;

/**
 * Keeps a virtual list at its end while rows come and grow, until a person scrolls up. It goes by the height of the content:
 * a row is measured, and formatted, some time after it was added, and in a slow browser that can be seconds.
 */
export function useFollowedEnd(isFollowingAtFirst: boolean): FollowedEnd {
  const isFollowing = useRef(isFollowingAtFirst);
  const last = useRef(0);
  const frame = useCallback((element: HTMLElement | null) => {
    const list = element?.firstElementChild;
    const content = list?.firstElementChild;
    if (!list || !content) return;
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) list.scrollTop = list.scrollHeight;
    });
    observer.observe(content);
    observer.observe(list);
    return () => observer.disconnect();
  }, []);
  const scrolledTo = useCallback((offset: number, below: number) => {
    if (below < NEAR) isFollowing.current = true;
    else if (offset < last.current) isFollowing.current = false;
    last.current = offset;
  }, []);
  return { frame, isFollowing, scrolledTo };
}
