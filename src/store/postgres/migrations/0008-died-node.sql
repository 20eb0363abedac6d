-- The process that had the session when it was taken for dead. One that is back among the workers only lost its connection.
alter table agent_state add column died_node_no integer;
