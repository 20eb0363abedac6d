-- Counts the writes of a row, so that none is made from an older one than the last.
alter table agent_state add column revision bigint not null default 0;
