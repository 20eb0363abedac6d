-- For how long a process that lives has not turned its event loop, in milliseconds: something in it computes without a pause.
alter table workers add column blocked_ms integer not null default 0;
