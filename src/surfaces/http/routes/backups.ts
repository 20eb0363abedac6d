import { z } from "zod";
import type { Routes } from "../context.ts";
import { Problem } from "../problem.ts";
import { answers } from "../schemas.ts";

/** What `everstep backup` needs from a server: a copy that nobody writes to. */
export const backupRoutes: Routes = (app, { store }) => {
  app.post(
    "/api/backups",
    {
      schema: {
        tags: ["system"],
        operationId: "stageBackup",
        summary:
          "Stage a consistent copy of all data in a folder on the server's machine, for `everstep backup`; agents keep running",
        response: answers(
          201,
          z.object({
            folder: z.string().describe("Removed by DELETE, by the next backup and when the server starts."),
          }),
          409,
        ),
      },
    },
    async (_, reply) => {
      if (!store.stageBackup)
        throw new Problem(409, "this server's data is in PostgreSQL; use its own backups: pg_dump, pg_basebackup");
      return reply.code(201).send({ folder: await store.stageBackup() });
    },
  );

  app.delete(
    "/api/backups",
    {
      schema: {
        tags: ["system"],
        operationId: "removeStagedBackup",
        summary: "Remove the staged copy",
        response: answers(204, z.null()),
      },
    },
    async (_, reply) => {
      await store.removeStagedBackup?.();
      return reply.code(204).send(null);
    },
  );
};
