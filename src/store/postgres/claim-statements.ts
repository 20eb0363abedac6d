import { GUIDANCE_TYPES } from "../../domain/action-type.ts";
import { LIVE } from "./session-reads.ts";
import { selected } from "./tables.ts";

/** Sessions of nobody that are taken at once at least, where other workers want their share of them. */
const FREE_AT_ONCE = 4;

/** The types of actions that carry guidance, as SQL has them. */
export const GUIDANCE = [...GUIDANCE_TYPES].map((type) => `'${type}'`).join(", ");
const IN_ORDER = "order by urgency desc, created_at, action_id";

const claimFrom = (sessions: string): string => `
with wanted as (${sessions}),
heads as materialized (
  select h.action_id, h.session_id, h.urgency, h.created_at, h.run_at, s.node_no as owner_no, s.status,
    s.node_no is null and s.status in (${LIVE}, 'error') as is_free
  from wanted w
  cross join lateral (
    select q.action_id, q.session_id, q.urgency, q.created_at, q.run_at from queue q
    where q.session_id = w.session_id and not q.processed
    order by q.urgency desc, q.created_at, q.action_id limit 1) h
  left join agent_state s on s.session_id = h.session_id
  where (s.node_no is null or s.node_no = $1)
    and not exists (select 1 from queue b where b.session_id = h.session_id and b.claimed_by is not null)),
ready as materialized (
  select *, row_number() over (partition by coalesce(is_free, false) order by urgency desc, created_at, action_id) as place,
    count(*) over (partition by coalesce(is_free, false)) as together
  from heads where (run_at is null or run_at <= $3::timestamptz)),
chosen as materialized (
  select * from ready where not coalesce(is_free, false) or place <= greatest(${FREE_AT_ONCE}, (together + $5 - 1) / $5)
  order by urgency desc, created_at, action_id limit $4),
free as materialized (
  select s.session_id from agent_state s
  where s.session_id in (select session_id from chosen where is_free) and s.node_no is null
    and exists (select 1 from workers where node_no = $1)
  order by s.session_id for update skip locked),
taken as (
  update agent_state s set owner = $2, node_no = $1, epoch = s.epoch + 1 from free f
  where s.session_id = f.session_id returning s.session_id),
claimed as (
  update queue q set claimed_by = $1 from chosen c
  where q.action_id = c.action_id and q.claimed_by is null and not q.processed
    and (not coalesce(c.is_free, false) or c.session_id in (select session_id from taken))
  returning ${selected("queue", "q")})
select 'claimed' as found_as, c.* from claimed c
union all select 'waiting', ${nullsFor("run_at")} from heads h where h.run_at > $3::timestamptz
union all select 'left', ${nullsFor("session_id")} from ready h where h.action_id not in (select action_id from chosen)
union all select 'taken', ${nullsFor("session_id")} from taken h
union all select 'more', ${nullsFor("session_id")} from chosen h where exists (
  select 1 from queue o where o.session_id = h.session_id and not o.processed and o.action_id <> h.action_id)`;

/** A row of the queue with nothing but one column of `h`. */
function nullsFor(column: "run_at" | "session_id"): string {
  return selected("queue", "h")
    .split(", ")
    .map((name) => (name === `h.${column}` ? name : "null"))
    .join(", ");
}

// The inner select hides how many sessions there are this time: a plan for any number is as good, and is kept, where the server
// would else plan each claim anew.
export const CLAIM_AMONG = claimFrom("select unnest((select $6::text[])) as session_id");
export const CLAIM_ALL = claimFrom(
  "select distinct q.session_id from queue q where not q.processed and q.claimed_by is null",
);

/**
 * What follows an action that this process has claimed (see the port): the guidance that is next, as far as the parameters for
 * count and bytes go, and the first request that is none. A request that waits for a retry holds back what comes after it.
 */
export const CLAIM_FOLLOWING = `
with line as materialized (
  select action_id, urgency, created_at, action_type in (${GUIDANCE}) as is_guidance, coalesce(run_at > $4::timestamptz, false) as waits,
    payload
  from queue where session_id = $3 and not processed and claimed_by is null ${IN_ORDER} limit $5),
measured as (
  select action_id, sum(octet_length(payload::text)) over places as bytes, bool_or(waits or not is_guidance) over places as is_over
  from line window places as (${IN_ORDER})),
other as materialized (
  select action_id, urgency, created_at from queue
  where session_id = $3 and not processed and claimed_by is null and action_type not in (${GUIDANCE}) ${IN_ORDER} limit 1),
chosen as (
  select action_id from measured where not is_over and bytes <= $6
  union all
  select o.action_id from other o where not exists (
    select 1 from queue b where b.session_id = $3 and not b.processed and b.run_at > $4::timestamptz
      and (-b.urgency, b.created_at, b.action_id) <= (-o.urgency, o.created_at, o.action_id)))
update queue q set claimed_by = $1 from chosen c
where q.action_id = c.action_id and q.claimed_by is null and not q.processed
  and exists (select 1 from queue f where f.action_id = $2 and f.claimed_by = $1 and not f.processed)
returning ${selected("queue", "q")}`;
