-- What a session waits for and asks, who started it, and what its steps cost. Programs of an earlier version may write beside this
-- one: every column has a default.
alter table agent_state
  add column wake_at timestamptz,
  add column rests_since timestamptz,
  add column spawned_by jsonb,
  -- The session of `spawned_by`.
  add column spawner_id text collate "C",
  add column retry_at timestamptz,
  add column cost_usd double precision not null default 0,
  add column step_started_at timestamptz;
create index agent_state_of_spawner on agent_state (spawner_id, number) where spawner_id is not null;

alter table agent_steps
  add column moniker_version text,
  add column cost_usd double precision not null default 0,
  add column attempts integer not null default 1,
  add column calls jsonb not null default '[]',
  add column directives jsonb;

-- `question` was what a session asks, and is the whole question from now on, as JSON text.
update agent_state set question = json_build_object(
    'question_id', left(session_id, 180) || '.' || iteration,
    'text', question,
    'choices', null, 'schema', null, 'about', null,
    'asked_at', to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'iteration', greatest(iteration, 0))::text
  where question is not null and question not like chr(1) || '%';
