import { useEffect } from "react";
import { connection } from "./live.ts";

/** Called when a connection is there again: what could not be read before may be now. */
export function useReconnected(retry: () => void): void {
  useEffect(() =>
    connection.listen(() => {
      if (connection.value === "connected") retry();
    }),
  );
}
