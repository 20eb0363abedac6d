import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { connect, connection } from "./data/live.ts";
import { client } from "./data/queries.ts";
import { followSummaries } from "./data/summaries-live.ts";
import { tokenNeeded } from "./data/token.ts";
import "./style.css";

followSummaries();
connect();
// What changed while nobody told: rows are read again, steps and messages follow from their cursors.
let wasLost = false;
connection.listen(() => {
  if (connection.value === "lost") wasLost = true;
  else if (connection.value === "connected" && wasLost) {
    wasLost = false;
    void client.invalidateQueries();
  }
});
tokenNeeded.listen(() => {
  if (!tokenNeeded.value) void client.invalidateQueries();
});

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
