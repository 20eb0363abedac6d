import { useQuery } from "@tanstack/react-query";
import type { Answer } from "../../../src/client/client.ts";
import { get, pathOf, post } from "./api.ts";
import { client, type MonikerInfo } from "./queries.ts";

type MonikerCatalog = Answer<"GET /api/monikers"> & { monikers: MonikerInfo[] };
type MonikerVersions = Answer<"GET /api/monikers/{name}/versions">;
export type MonikerVersion = MonikerVersions["versions"][number];

export const useMonikerCatalog = () =>
  useQuery({
    queryKey: ["moniker catalog"],
    queryFn: ({ signal }) => get<MonikerCatalog>("/api/monikers", {}, signal),
  });

/** The server reads the steps of long sessions over several requests. */
export const useMonikerVersions = (name: string) =>
  useQuery<MonikerVersions>({
    queryKey: ["moniker versions", name],
    refetchInterval: ({ state }) => (state.data?.is_complete === false ? 500 : 10_000),
    queryFn: ({ signal }) => get<MonikerVersions>(pathOf("monikers", name, "versions"), {}, signal),
  });

/** Returns how many monikers are different now. */
export async function reloadMonikers(): Promise<number> {
  const { monikers } = await post<Answer<"POST /api/monikers/reload">>("/api/monikers/reload");
  const stale = [["monikers"], ["moniker catalog"], ["moniker versions"]];
  await Promise.all(stale.map((queryKey) => client.invalidateQueries({ queryKey })));
  return monikers.filter(({ change }) => change !== "unchanged").length;
}
