-- The last owner died rather than released the session, and nothing was committed for it since.
alter table agent_state add column owner_died boolean not null default false;
