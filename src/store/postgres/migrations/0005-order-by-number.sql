-- Newest is what was written last, not what carries the latest time: clocks are set back now and then.
create index agent_state_by_number on agent_state (number);
create index agent_state_of_agent on agent_state (agent_id, number);
create index agent_state_of_status on agent_state (status, number);
create index conversations_by_number on conversations (number);
drop index agent_state_by_age;
drop index agent_state_by_agent;
drop index agent_state_by_status;
drop index conversations_by_age;
