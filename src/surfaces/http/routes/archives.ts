import { z } from "zod";
import { DURATION, durationOf } from "../../../domain/duration.ts";
import { EverstepError } from "../../../domain/errors.ts";
import { idSchema } from "../../../domain/ids.ts";
import { archiveJobSchema, volumeSchema } from "../../../domain/volume.ts";
import type { Routes } from "../context.ts";
import { Problem } from "../problem.ts";
import { answers } from "../schemas.ts";

const olderThan = z
  .string()
  .regex(DURATION, "hours, days or weeks: 12h, 30d, 8w")
  .describe("How long ago they ended: 12h, 30d, 8w.");
const dryRun = z.boolean().default(false).describe("Only count.");

/** Moving ended sessions' history into volumes, back, and out of existence. One job runs at a time; it is followed by asking. */
export const archiveRoutes: Routes = (app, { archives }) => {
  app.get(
    "/api/archives",
    {
      schema: {
        tags: ["system"],
        operationId: "listArchives",
        summary: "The volumes that hold archived history, and the job that this server runs or ran last",
        response: answers(
          200,
          z.object({ job: archiveJobSchema.nullable(), volumes: z.array(volumeSchema).describe("Oldest first.") }),
        ),
      },
    },
    async () => ({ job: archives.job, volumes: await archives.list() }),
  );

  app.post(
    "/api/archives",
    {
      schema: {
        tags: ["system"],
        operationId: "startArchiveJob",
        summary:
          "Move the steps and messages of sessions that ended long ago into a volume, bring sessions back, or drop whole volumes; `GET /api/archives` tells how it goes",
        body: z.discriminatedUnion("operation", [
          z.object({ operation: z.literal("archive"), older_than: olderThan, dry_run: dryRun }),
          z.object({ operation: z.literal("restore"), session_ids: z.array(idSchema).min(1).max(1000) }),
          z.object({ operation: z.literal("drop"), older_than: olderThan, dry_run: dryRun }),
        ]),
        response: answers(202, archiveJobSchema, 400, 409),
      },
    },
    async ({ body }, reply) => {
      const job = refusing(() =>
        body.operation === "restore"
          ? archives.start({ kind: "restore", session_ids: body.session_ids })
          : archives.start({
              kind: body.operation,
              older_than_ms: durationOf(body.older_than, "older_than"),
              dry_run: body.dry_run,
            }),
      );
      return reply.code(202).send(job);
    },
  );
};

/** A job runs already, or there is no place for volumes. */
function refusing<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof EverstepError) throw new Problem(409, error.message);
    throw error;
  }
}
