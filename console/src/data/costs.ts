import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../../src/client/client.ts";
import { get } from "./api.ts";

type Costs = Answer<"GET /api/costs">;
export type CostsBy = Costs["by"];
export type CostRow = Costs["costs"][number];

export const useCosts = (by: CostsBy, since: string) =>
  useQuery({
    queryKey: ["costs", by, since],
    refetchInterval: 10_000,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => get<Costs>("/api/costs", { by, since }, signal),
  });
