import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { loadFirstPage } from "./app/pages.tsx";
import { keepScrollPlaces } from "./app/scroll.ts";
import { connect, connection } from "./data/live.ts";
import { client } from "./data/queries.ts";
import { followSummaries } from "./data/summaries-live.ts";
import { tokenNeeded } from "./data/token.ts";
import "./style.css";

keepScrollPlaces();
followSummaries();
connect();
// Rows may have changed while disconnected, so they are read again. Steps and messages continue from their cursors.
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

const render = (): void =>
  createRoot(document.getElementById("root") as HTMLElement).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );

// Not awaited: the chunks of pages import this module.
void loadFirstPage().then(render);
