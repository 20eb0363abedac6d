import { useEffect } from "react";
import { connection } from "./live.ts";

/** Retries after a reconnection what could not be read before. */
export function useReconnected(retry: () => void): void {
  useEffect(() =>
    connection.listen(() => {
      if (connection.value === "connected") retry();
    }),
  );
}
