import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { Button } from "./button.tsx";

type Pages = Pick<UseInfiniteQueryResult, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;

/** Reads the next page of a list, if there is one. */
export function ShowMore({ pages: { hasNextPage, isFetchingNextPage, fetchNextPage } }: { pages: Pages }) {
  if (!hasNextPage) return null;
  return (
    <div className="flex justify-center p-3">
      <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        Show more
      </Button>
    </div>
  );
}
