-- Why a session is paused, and how often the step that comes next was begun without a commit.
alter table agent_state add column pause_reason jsonb, add column started_attempt jsonb;
