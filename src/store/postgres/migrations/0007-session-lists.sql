-- What lists of sessions go by. Everything here is kept up by the database itself, so that programs of an earlier version may
-- write beside this one.

alter table agent_state
  -- What a live session asks a person.
  add column question text,
  add column needs_person boolean not null generated always as (coalesce(
    question is not null
    or status = 'error'
    or (status = 'paused' and coalesce(pause_reason ->> 'kind', substring(pause_reason ->> '$json' from '"kind":"([a-z]+)"')) <> 'person')
    or (status = 'stopped' and stop_reason <> 'destroyed'), false)) stored,
  -- When it was updated in units of ten seconds, so that a step seldom changes what is indexed.
  add column updated_period bigint not null generated always as (
    floor(extract(epoch from updated_at at time zone 'UTC') / 10)::bigint) stored,
  -- Whether its text in `session_search` may be older than the row.
  add column search_is_stale boolean not null default true;
create index agent_state_of_agent_and_status on agent_state (agent_id, status, number);
create index agent_state_of_moniker on agent_state (moniker, status, number);
create index agent_state_needing on agent_state (number) where needs_person;
create index agent_state_by_update on agent_state (updated_period);
create index agent_state_of_agent_by_update on agent_state (agent_id, updated_period);

-- How many sessions there are of an agent and a moniker, of a moniker, and in all: '' stands for all, '=x' for x.
create table session_counts (
  agent_key text collate "C" not null,
  moniker_key text collate "C" not null,
  status text not null,
  needs_person boolean not null,
  count bigint not null,
  primary key (agent_key, moniker_key, status, needs_person)
);
create index session_counts_of_none on session_counts (agent_key) where count = 0;

-- What is not in `session_counts` yet: appended, so that no two commits wait for each other.
create table session_count_changes (
  number bigint generated always as identity primary key,
  agent_id text collate "C" not null,
  moniker text not null,
  status text not null,
  needs_person boolean not null,
  change bigint not null
);
insert into session_count_changes (agent_id, moniker, status, needs_person, change)
  select agent_id, moniker, status, needs_person, count(*) from agent_state group by agent_id, moniker, status, needs_person;

-- The text in which a session is searched, folded, and the hashes of its parts of up to three characters.
create table session_search (
  number bigint primary key,
  session_id text collate "C" not null,
  text text collate "C" not null,
  grams integer[] not null
);
create index session_search_grams on session_search using gin (grams) with (gin_pending_list_limit = 512);

-- Which process keeps the tables above small and up to date, and until when no other does.
create table upkeep (name text primary key, until timestamptz not null);
insert into upkeep (name, until) values ('lists', '-infinity');

-- Sessions whose text is to be written to `session_search`.
create table session_search_stale (session_id text collate "C" primary key);
insert into session_search_stale (session_id) select session_id from agent_state;

create function note_session_created() returns trigger language plpgsql as $$
begin
  insert into session_count_changes (agent_id, moniker, status, needs_person, change)
    values (new.agent_id, new.moniker, new.status, new.needs_person, 1);
  insert into session_search_stale (session_id) values (new.session_id) on conflict do nothing;
  return null;
end $$;
create function note_session_counted() returns trigger language plpgsql as $$
begin
  insert into session_count_changes (agent_id, moniker, status, needs_person, change)
    values (old.agent_id, old.moniker, old.status, old.needs_person, -1),
      (new.agent_id, new.moniker, new.status, new.needs_person, 1);
  return null;
end $$;
create function note_session_stale() returns trigger language plpgsql as $$
begin
  insert into session_search_stale (session_id) values (new.session_id) on conflict do nothing;
  return null;
end $$;
create function note_session_deleted() returns trigger language plpgsql as $$
begin
  insert into session_count_changes (agent_id, moniker, status, needs_person, change)
    values (old.agent_id, old.moniker, old.status, old.needs_person, -1);
  delete from session_search where number = old.number;
  delete from session_search_stale where session_id = old.session_id;
  return null;
end $$;

create trigger session_created after insert on agent_state for each row execute function note_session_created();
create trigger session_counted after update on agent_state for each row
  when (old.status is distinct from new.status or old.needs_person is distinct from new.needs_person)
  execute function note_session_counted();
create trigger session_stale after update on agent_state for each row
  when (not old.search_is_stale and old.result is distinct from new.result)
  execute function note_session_stale();
create trigger session_deleted after delete on agent_state for each row execute function note_session_deleted();
