import { useQuery } from "@tanstack/react-query";
import type { Answer } from "../../../src/client/client.ts";
import { get, post } from "./api.ts";

type Tools = Answer<"GET /api/tools">;
export type OfferedTool = Tools["tools"][number];
export type ServerStatus = Tools["servers"][number];
export type ToolAnswer = Answer<"POST /api/tools/try">;

export const useTools = () =>
  useQuery({
    queryKey: ["tools"],
    refetchInterval: 5000,
    queryFn: ({ signal }) => get<Tools>("/api/tools", {}, signal),
  });

export const tryTool = (name: string, args: Record<string, unknown>): Promise<ToolAnswer> =>
  post("/api/tools/try", { name, args });
