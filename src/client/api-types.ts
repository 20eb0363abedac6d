// Made from the OpenAPI document by `npm run generate:client-types`. A test compares it with what the server describes.

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** The rows that calls and events carry. */
export type Schemas = {
  RequestedOptionsInput: {
    stop_on_done?: boolean;
    max_steps?: number;
    max_runtime_s?: number;
    max_tokens?: number;
    max_cost_usd?: number;
    step_interval_ms?: number;
    /** Seconds that one attempt at a step may take; 600 where it is absent. */
    step_timeout_s?: number;
    retry?: {
      max_attempts?: number;
      backoff_ms?: number;
      outage_s?: number;
    };
    outlives_parent?: boolean;
    hold_before?: string[];
    /** Globs over tools' names; the first list that fits, in the order deny, ask, run, decides. */
    tools?: {
      deny?: string[];
      ask?: string[];
      run?: string[];
    };
    /** provider/model; EVERSTEP_MODEL where it is absent. */
    model?: string;
    /** How the model is to answer; the provider's defaults where absent. */
    model_settings?: {
      temperature?: number;
      max_output_tokens?: number;
      reasoning?: "none" | "minimal" | "low" | "medium" | "high";
    };
    /** Asked in turn where the model cannot be reached or does not take the request. */
    fallback_models?: string[];
  };
  Problem: {
    type: string;
    title: string;
    status: number;
    detail: string;
    errors?: {
      path: string;
      message: string;
    }[];
  };
  Action: {
    action_id: string;
    created_at: string;
    action_type:
      | "agent_create"
      | "agent_pause"
      | "agent_resume"
      | "agent_interrupt"
      | "agent_input"
      | "agent_destroy"
      | "agent_fork"
      | "agent_answer"
      | "agent_join"
      | "agent_drop";
    agent_id: string | null;
    session_id: string;
    payload: { [key: string]: JsonValue };
    metadata: { [key: string]: JsonValue };
    urgency: number;
    processed: boolean;
    processed_at: string | null;
    outcome: "ok" | "rejected" | "failed" | null;
    error: string | null;
    attempts: number;
    run_at: string | null;
    receipt: "accepted" | "delivered" | "consumed" | "bounced";
    consumed_iteration: number | null;
  };
  Agent: {
    agent_id: string;
    moniker: string;
    session_count: number;
    latest: Schemas["Session"];
  };
  AgentConfig: {
    agent_id: string;
    moniker: string;
    params: { [key: string]: JsonValue };
    options: Schemas["SessionOptions"];
    description: string | null;
    updated_at: string;
  };
  Conversation: {
    conversation_id: string;
    title: string | null;
    created_by: string | null;
    status: "open" | "archived";
    tags: string[];
    created_at: string;
  };
  Message: {
    message_id: string;
    conversation_id: string;
    created_at: string;
    sender_type: "user" | "agent" | "system";
    user_id: string | null;
    agent_id: string | null;
    session_id: string | null;
    text: string | null;
    data: JsonValue;
    status: string | null;
    event_type: string | null;
    iteration: number | null;
    step_token: string | null;
    next_step_token: string | null;
    notes: string | null;
    action_ids: string[];
  };
  Participant: {
    participant_id: string;
    conversation_id: string;
    user_id: string | null;
    agent_id: string | null;
    session_id: string | null;
    role: string | null;
    joined_at: string;
    left_at: string | null;
  };
  Session: {
    agent_id: string;
    session_id: string;
    conversation_id: string | null;
    moniker: string;
    params: { [key: string]: JsonValue };
    options: Schemas["SessionOptions"];
    status: "running" | "waiting" | "paused" | "stopping" | "stopped" | "done" | "error";
    stop_reason: "max_steps" | "max_runtime_s" | "max_tokens" | "max_cost_usd" | "destroyed" | null;
    iteration: number;
    step_token: string | null;
    next_step_token: string;
    result: JsonValue;
    context: { [key: string]: JsonValue };
    pending_guidance: JsonValue[];
    pending_action_ids: string[];
    last_error: string | null;
    tokens_used: number;
    created_action_id: string;
    parent_session_id: string | null;
    parent_iteration: number | null;
    created_at: string;
    updated_at: string;
    ended_at: string | null;
    pause_reason:
      | {
          kind: "person";
          user_id?: string;
          reason?: string;
        }
      | {
          kind: "breakpoint";
          step_token: string;
        }
      | {
          kind: "crashes";
          step_token: string;
          attempts: number;
        }
      | null;
    started_attempt: {
      iteration: number;
      attempts: number;
      once?: boolean;
      begun?: number;
      ended?: "error" | "interrupt" | "timeout";
      outage_since?: string;
      is_released?: true;
      is_due?: true;
    } | null;
    question: {
      question_id: string;
      text: string;
      choices:
        | {
            value: JsonValue;
            label?: string;
          }[]
        | null;
      schema: { [key: string]: JsonValue } | null;
      about: JsonValue;
      asked_at: string;
      iteration: number;
    } | null;
    wake_at: string | null;
    rests_since: string | null;
    spawned_by: {
      session_id: string;
      iteration: number;
    } | null;
    retry_at: string | null;
    cost_usd: number;
    step_started_at: string | null;
  };
  SessionOptions: {
    stop_on_done?: boolean;
    max_steps?: number;
    max_runtime_s?: number;
    max_tokens?: number;
    max_cost_usd?: number;
    step_interval_ms?: number;
    /** Seconds that one attempt at a step may take; 600 where it is absent. */
    step_timeout_s?: number;
    retry?: {
      max_attempts: number;
      backoff_ms: number;
      outage_s?: number;
    };
    outlives_parent?: boolean;
    hold_before?: string[];
    /** Globs over tools' names; the first list that fits, in the order deny, ask, run, decides. */
    tools?: {
      deny?: string[];
      ask?: string[];
      run?: string[];
    };
    /** provider/model; EVERSTEP_MODEL where it is absent. */
    model?: string;
    /** How the model is to answer; the provider's defaults where absent. */
    model_settings?: {
      temperature?: number;
      max_output_tokens?: number;
      reasoning?: "none" | "minimal" | "low" | "medium" | "high";
    };
    /** Asked in turn where the model cannot be reached or does not take the request. */
    fallback_models?: string[];
  };
  SessionSummary: {
    agent_id: string;
    session_id: string;
    conversation_id: string | null;
    moniker: string;
    options: Schemas["SessionOptions"];
    status: "running" | "waiting" | "paused" | "stopping" | "stopped" | "done" | "error";
    stop_reason: "max_steps" | "max_runtime_s" | "max_tokens" | "max_cost_usd" | "destroyed" | null;
    iteration: number;
    last_error: string | null;
    tokens_used: number;
    parent_session_id: string | null;
    parent_iteration: number | null;
    pause_reason:
      | {
          kind: "person";
          user_id?: string;
          reason?: string;
        }
      | {
          kind: "breakpoint";
          step_token: string;
        }
      | {
          kind: "crashes";
          step_token: string;
          attempts: number;
        }
      | null;
    question: {
      question_id: string;
      text: string;
      choices:
        | {
            value: JsonValue;
            label?: string;
          }[]
        | null;
      schema: { [key: string]: JsonValue } | null;
      about: JsonValue;
      asked_at: string;
      iteration: number;
    } | null;
    wake_at: string | null;
    spawned_by: {
      session_id: string;
      iteration: number;
    } | null;
    retry_at: string | null;
    cost_usd: number;
    created_at: string;
    updated_at: string;
    ended_at: string | null;
    text: string | null;
  };
  Step: {
    id: string;
    created_at: string;
    agent_id: string;
    session_id: string;
    iteration: number;
    step_token: string;
    next_step_token: string;
    status: "ok" | "error";
    text: string | null;
    data: JsonValue;
    state: { [key: string]: JsonValue };
    guidance: JsonValue[];
    notes: string | null;
    latency_ms: number;
    tokens_used: number;
    error: string | null;
    action_ids: string[];
    moniker_version: string | null;
    cost_usd: number;
    attempts: number;
    calls: {
      kind: "model" | "tool";
      name: string;
      input: JsonValue;
      output: JsonValue;
      tokens?: number;
      input_tokens?: number;
      output_tokens?: number;
      cached_tokens?: number;
      estimated?: boolean;
      cost_usd?: number;
      latency_ms: number;
      error?: string;
    }[];
    directives: {
      wait?: {
        until?: string;
      };
      ask?: {
        text: string;
        choices?: {
          value: JsonValue;
          label?: string;
        }[];
        schema?: { [key: string]: JsonValue };
        about?: JsonValue;
      };
      once?: boolean;
      go_on?: boolean;
    } | null;
  };
  Webhook: {
    webhook_id: string;
    url: string;
    events: ("session.asks" | "session.ended" | "session.failed")[];
    agent_id: string | null;
    created_at: string;
    updated_at: string;
  };
  WebhookDelivery: {
    delivery_id: string;
    webhook_id: string;
    event: "session.asks" | "session.ended" | "session.failed";
    session_id: string;
    agent_id: string;
    status: "pending" | "delivered" | "given_up";
    attempts: number;
    response_status: number | null;
    last_error: string | null;
    created_at: string;
    last_attempt_at: string | null;
    next_attempt_at: string | null;
    ended_at: string | null;
  };
};

/** Every call with what it takes and what it answers. */
export type Routes = {
  /** List agents by id */
  "GET /api/agents": {
    query?: { limit?: number; offset?: number };
    answer: {
      agents: Schemas["Agent"][];
    };
  };
  /** Start a session of an agent */
  "POST /api/agents": {
    body: {
      moniker?: string;
      params?: { [key: string]: unknown };
      options?: Schemas["RequestedOptionsInput"];
      conversation_id?: string;
      agent_id: string;
      session_id?: string;
      urgency?: number;
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** One agent with its latest session */
  "GET /api/agents/{agent_id}": { path: { agent_id: string }; answer: Schemas["Agent"] };
  /** An agent's sessions, newest first */
  "GET /api/agents/{agent_id}/sessions": {
    path: { agent_id: string };
    query?: { sort?: "created_at" | "updated_at"; after?: string; limit?: number; offset?: number };
    answer: {
      sessions: Schemas["Session"][];
      /** What the next page is asked for with (`after`); null where this is the last one. */
      next: string | null;
    };
  };
  /** An agent's defaults */
  "GET /api/agents/{agent_id}/config": { path: { agent_id: string }; answer: Schemas["AgentConfig"] };
  /** Set what later sessions of the agent get where their request leaves something out */
  "PUT /api/agents/{agent_id}/config": {
    path: { agent_id: string };
    body: {
      moniker: string;
      params?: { [key: string]: unknown };
      options?: Schemas["RequestedOptionsInput"];
      description?: string | null;
    };
    answer: Schemas["AgentConfig"];
  };
  /** Start no further step; the one that runs is kept */
  "POST /api/sessions/{session_id}/pause": {
    path: { session_id: string };
    body?: {
      reason?: string;
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Start no further step; the one that runs is kept */
  "POST /api/agents/{agent_id}/pause": {
    path: { agent_id: string };
    body?: {
      reason?: string;
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Go on, try a failed step again, or go on past a limit that the given options lift */
  "POST /api/sessions/{session_id}/resume": {
    path: { session_id: string };
    body?: {
      reason?: string;
      options?: Schemas["RequestedOptionsInput"];
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Go on, try a failed step again, or go on past a limit that the given options lift */
  "POST /api/agents/{agent_id}/resume": {
    path: { agent_id: string };
    body?: {
      reason?: string;
      options?: Schemas["RequestedOptionsInput"];
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Give guidance to the next step, or to the running one now */
  "POST /api/sessions/{session_id}/interrupt": {
    path: { session_id: string };
    body: {
      guidance: unknown;
      mode?: "next" | "now";
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Give guidance to the next step, or to the running one now */
  "POST /api/agents/{agent_id}/interrupt": {
    path: { agent_id: string };
    body: {
      guidance: unknown;
      mode?: "next" | "now";
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** End the session for good */
  "POST /api/sessions/{session_id}/destroy": {
    path: { session_id: string };
    body?: {
      reason?: string;
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** End the session for good */
  "POST /api/agents/{agent_id}/destroy": {
    path: { agent_id: string };
    body?: {
      reason?: string;
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Start a session that goes on from one of this one's steps */
  "POST /api/sessions/{session_id}/fork": {
    path: { session_id: string };
    body: {
      iteration: number;
      session_id?: string;
      guidance?: unknown;
      state?: { [key: string]: unknown };
      params?: { [key: string]: unknown };
      options?: Schemas["RequestedOptionsInput"];
      moniker?: string;
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Answer what the session asks */
  "POST /api/sessions/{session_id}/answer": {
    path: { session_id: string };
    body: {
      answer: unknown;
      question_id?: string;
      /** Who asks; kept as `metadata.user_id`. */
      user_id?: string;
      /** Kept with the action. A request that is sent again with the same `request_id` in it is done once. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** List sessions, newest first */
  "GET /api/sessions": {
    query?: {
      status?: "running" | "waiting" | "paused" | "stopping" | "stopped" | "done" | "error";
      agent_id?: string;
      needs_person?: boolean;
      spawned_by?: string;
      sort?: "created_at" | "updated_at";
      after?: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      sessions: Schemas["Session"][];
      /** What the next page is asked for with (`after`); null where this is the last one. */
      next: string | null;
    };
  };
  /** Where a session stands */
  "GET /api/sessions/{session_id}": { path: { session_id: string }; answer: Schemas["Session"] };
  /** List steps of a session or an agent by iteration */
  "GET /api/agent-steps": {
    query?: {
      session_id?: string;
      agent_id?: string;
      min_iteration?: number;
      max_iteration?: number;
      after_iteration?: number;
      since_created_at?: string;
      status?: "ok" | "error";
      with_state?: boolean;
      limit?: number;
      offset?: number;
    };
    answer: {
      steps: {
        id: string;
        created_at: string;
        agent_id: string;
        session_id: string;
        iteration: number;
        step_token: string;
        next_step_token: string;
        status: "ok" | "error";
        text: string | null;
        data: JsonValue;
        state?: { [key: string]: JsonValue };
        guidance: JsonValue[];
        notes: string | null;
        latency_ms: number;
        tokens_used: number;
        error: string | null;
        action_ids: string[];
        moniker_version: string | null;
        cost_usd: number;
        attempts: number;
        calls: {
          kind: "model" | "tool";
          name: string;
          input: JsonValue;
          output: JsonValue;
          tokens?: number;
          input_tokens?: number;
          output_tokens?: number;
          cached_tokens?: number;
          estimated?: boolean;
          cost_usd?: number;
          latency_ms: number;
          error?: string;
        }[];
        directives: {
          wait?: {
            until?: string;
          };
          ask?: {
            text: string;
            choices?: {
              value: JsonValue;
              label?: string;
            }[];
            schema?: { [key: string]: JsonValue };
            about?: JsonValue;
          };
          once?: boolean;
          go_on?: boolean;
        } | null;
      }[];
    };
  };
  /** The newest step */
  "GET /api/agent-steps/latest": { query?: { session_id?: string; agent_id?: string }; answer: Schemas["Step"] };
  /** Run a recorded step once more on today's code, and see what differs; nothing is written */
  "POST /api/sessions/{session_id}/steps/{iteration}/rerun": {
    path: { session_id: string; iteration: number };
    body?: {
      /** provider/model, instead of the one that is configured. */
      model?: string;
      /** Instead of what the step was given: a list of pieces, or one piece that is no list. */
      guidance?: unknown;
      /** Instead of the state that the step started from. */
      state?: { [key: string]: unknown };
    };
    answer: {
      /** What the step returned; null where it failed. */
      frame: {
        step: string;
        next_step: string;
        state: { [key: string]: JsonValue };
        text?: string;
        data?: JsonValue;
        done: boolean;
        notes?: string;
        wait?: {
          until?: string;
        };
        ask?: {
          text: string;
          choices?: {
            value: JsonValue;
            label?: string;
          }[];
          schema?: { [key: string]: JsonValue };
          about?: JsonValue;
        };
        once?: boolean;
        go_on?: boolean;
        actions?: {
          action_type:
            | "agent_create"
            | "agent_pause"
            | "agent_resume"
            | "agent_interrupt"
            | "agent_input"
            | "agent_destroy"
            | "agent_fork"
            | "agent_answer"
            | "agent_join"
            | "agent_drop";
          agent_id?: string;
          session_id?: string;
          moniker?: string;
          params?: { [key: string]: JsonValue };
          options?: { [key: string]: JsonValue };
          conversation_id?: string;
          payload?: { [key: string]: JsonValue };
          metadata?: { [key: string]: JsonValue };
          urgency?: number;
        }[];
      } | null;
      error: string | null;
      latency_ms: number;
      tokens_used: number;
      /** The version of the code that ran. */
      moniker_version: string | null;
      /** Whether it is anything but what was recorded. */
      differs: boolean;
      /** The fields of the frame that differ; `error` where only one of the two failed. */
      differences: string[];
    };
  };
  /** Find sessions, newest first, without their states; with counts by status */
  "GET /api/session-summaries": {
    query?: {
      status?:
        | "running"
        | "waiting"
        | "paused"
        | "stopping"
        | "stopped"
        | "done"
        | "error"
        | ("running" | "waiting" | "paused" | "stopping" | "stopped" | "done" | "error")[];
      session_id?: string | string[];
      agent_id?: string;
      moniker?: string;
      q?: string;
      needs_person?: boolean;
      spawned_by?: string;
      sort?: "created_at" | "updated_at";
      after?: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      sessions: Schemas["SessionSummary"][];
      /** How many there are in all. */
      total: number;
      /** How many there are of each status, whatever `status` was asked for. */
      counts: {
        running: number;
        waiting: number;
        paused: number;
        stopping: number;
        stopped: number;
        done: number;
        error: number;
      };
      /** False where so many fit `q` that they were not counted: there are at least `total`, at least `counts`. */
      exact: boolean;
      /** What the next page is asked for with (`after`); null where this is the last one. */
      next: string | null;
    };
  };
  /** List actions, newest first */
  "GET /api/actions": {
    query?: { session_id?: string; agent_id?: string; processed?: boolean; limit?: number; offset?: number };
    answer: {
      actions: Schemas["Action"][];
    };
  };
  /** Put any action into the queue */
  "POST /api/actions": {
    body: {
      action_type:
        | "agent_create"
        | "agent_pause"
        | "agent_resume"
        | "agent_interrupt"
        | "agent_input"
        | "agent_destroy"
        | "agent_fork"
        | "agent_answer"
        | "agent_join"
        | "agent_drop";
      agent_id?: string;
      session_id?: string;
      payload?: { [key: string]: unknown };
      metadata?: { [key: string]: unknown };
      urgency?: number;
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** One action with its receipt */
  "GET /api/actions/{action_id}": { path: { action_id: string }; answer: Schemas["Action"] };
  /** Take back guidance that no step used yet; 202 where that is not certain within five seconds */
  "DELETE /api/actions/{action_id}": { path: { action_id: string }; answer: Schemas["Action"] };
  /** List conversations, newest first */
  "GET /api/conversations": {
    query?: { status?: "open" | "archived"; tag?: string; limit?: number; offset?: number };
    answer: {
      conversations: Schemas["Conversation"][];
    };
  };
  /** Open a conversation */
  "POST /api/conversations": {
    body?: {
      conversation_id?: string;
      title?: string | null;
      created_by?: string | null;
      tags?: string[];
    };
    answer: Schemas["Conversation"];
  };
  /** One conversation */
  "GET /api/conversations/{conversation_id}": { path: { conversation_id: string }; answer: Schemas["Conversation"] };
  /** Change a conversation's title, status or tags */
  "PATCH /api/conversations/{conversation_id}": {
    path: { conversation_id: string };
    body?: {
      title?: string | null;
      status?: "open" | "archived";
      tags?: string[];
    };
    answer: Schemas["Conversation"];
  };
  /** Who is or was in the conversation */
  "GET /api/conversations/{conversation_id}/participants": {
    path: { conversation_id: string };
    answer: {
      participants: Schemas["Participant"][];
    };
  };
  /** Let a person or a session join */
  "POST /api/conversations/{conversation_id}/participants": {
    path: { conversation_id: string };
    body?: {
      user_id?: string;
      agent_id?: string;
      session_id?: string;
      role?: string | null;
    };
    answer: Schemas["Participant"];
  };
  /** Let someone leave */
  "DELETE /api/conversations/{conversation_id}/participants/{participant_id}": {
    path: { conversation_id: string; participant_id: string };
    answer: null;
  };
  /** The transcript, oldest first */
  "GET /api/conversations/{conversation_id}/messages": {
    path: { conversation_id: string };
    query?: { since?: string; after?: string; limit?: number; offset?: number };
    answer: {
      messages: Schemas["Message"][];
    };
  };
  /** Say something; the sessions that are meant get it as guidance */
  "POST /api/conversations/{conversation_id}/messages": {
    path: { conversation_id: string };
    body: {
      user_id: string;
      text: string;
      data?: unknown;
      message_id?: string;
      to?: string[];
      mode?: "next" | "now";
    };
    answer: {
      message: Schemas["Message"];
      action_ids: string[];
    };
  };
  /** The tasks that agents can be given */
  "GET /api/monikers": {
    answer: {
      monikers: {
        name: string;
        kind: "continuous" | "finite" | "reactive";
        description: string;
        params_schema: { [key: string]: JsonValue };
        /** Changes whenever its code or its prompts do. */
        version: string | null;
      }[];
      /** Files and workers that could not be loaded, why, and which moniker goes on as it was. */
      failed?: {
        file: string;
        moniker: string | null;
        error: string;
      }[];
    };
  };
  /** Load monikers whose code or prompts changed; a running step finishes on the old code */
  "POST /api/monikers/reload": {
    answer: {
      /** Those that are not built in. */
      monikers: {
        name: string;
        version: string;
        change: "added" | "changed" | "removed" | "unchanged";
      }[];
      /** Files and workers that could not be loaded, why, and which moniker goes on as it was. */
      failed: {
        file: string;
        moniker: string | null;
        error: string;
      }[];
    };
  };
  /** Find words in steps and messages, letter case and diacritics aside */
  "GET /api/search": {
    query: { q: string; agent_id?: string; session_id?: string; limit?: number };
    answer: {
      hits: {
        kind: "step" | "message";
        score: number;
        text: string;
        session_id?: string;
        iteration?: number;
        conversation_id?: string;
        message_id?: string;
      }[];
    };
  };
  /** Let sessions go on that are held since the start (EVERSTEP_START_HELD=1) */
  "POST /api/system/release": {
    body?: {
      session_ids?: string[];
      agent_id?: string;
      all?: boolean;
    };
    answer: {
      /** Sessions that go on in the process that answers. */
      released: number;
    };
  };
  /** Whether work is being done */
  "GET /health": {
    answer: {
      status: string;
      store: string;
      live_sessions: number;
      queue_depth: number;
      queue_lag_ms: number;
      problems: string[];
      /** The processes that share the store, on PostgreSQL. */
      workers?: {
        /** Only where the token is given, if one is set. */
        name?: string;
        started_at: string;
        takes_sessions: boolean;
        owned_sessions: number;
        actions_under_way: number;
        silent_ms: number;
        /** For how long a step has kept everything else in the process from running; 0 where none does. */
        blocked_ms: number;
      }[];
      /** Why the store cannot be used or written. */
      error?: string;
    };
  };
  /** The tools that steps can call, and the servers that they come from */
  "GET /api/tools": {
    query?: { session_id?: string };
    answer: {
      tools: {
        name: string;
        description: string;
        input_schema: { [key: string]: JsonValue };
        /** Changes nothing. */
        read_only: boolean;
        /** A second call with the same arguments changes nothing more. */
        idempotent: boolean;
        /** May overwrite or delete what is there. */
        destructive: boolean;
        policy: "run" | "ask" | "deny";
      }[];
      servers: {
        name: string;
        status: "ready" | "connecting" | "failed" | "stopped";
        /** Why it cannot be used; null where it can, or nothing is known yet. */
        error: string | null;
      }[];
    };
  };
  /** The queue, the workers, the store and the throughput of the last half hour */
  "GET /api/system": {
    answer: {
      store: string;
      sessions: {
        running: number;
        waiting: number;
        paused: number;
        stopping: number;
        stopped: number;
        done: number;
        error: number;
      };
      queue_depth: number;
      queue_lag_ms: number;
      /** What runs agents in this process; none where it only serves. */
      runtimes: {
        worker_id: string;
        pid: number;
        started_at: string;
        /** Steps under way. */
        running_steps: number;
        /** Steps that wait for a place among the running ones. */
        waiting_steps: number;
        max_running_steps: number;
        /** Whether sessions that were there at the start wait to be released. */
        holds_sessions: boolean;
      }[];
      /** The processes that share the store, on PostgreSQL. */
      workers?: {
        /** Only where the token is given, if one is set. */
        name?: string;
        started_at: string;
        takes_sessions: boolean;
        owned_sessions: number;
        actions_under_way: number;
        silent_ms: number;
        /** For how long a step has kept everything else in the process from running; 0 where none does. */
        blocked_ms: number;
      }[];
      process: {
        node: string;
        uptime_s: number;
        memory_bytes: number;
      };
      /** What this process did in the last half hour, in pieces of five seconds. */
      samples: {
        at: string;
        steps: number;
        errors: number;
        tokens: number;
        latency_ms: number;
      }[];
    };
  };
  /** What sessions cost, by the day on which they began, by agent or by model */
  "GET /api/costs": {
    query?: { by?: "day" | "agent" | "model"; since?: string };
    answer: {
      by: "day" | "agent" | "model";
      since: string;
      /** The day of the newest entry in the catalog of prices; what changed later is not in it. */
      prices_as_of: string;
      total: {
        sessions: number;
        tokens_used: number;
        /** What has no price counts as nothing. */
        cost_usd: number;
      };
      /** By `key`: a day, an agent's id, or a model; null where the sessions had none of their own. */
      costs: {
        sessions: number;
        tokens_used: number;
        /** What has no price counts as nothing. */
        cost_usd: number;
        key: string | null;
      }[];
    };
  };
  /** One webhook */
  "GET /api/webhooks/{webhook_id}": { path: { webhook_id: string }; answer: Schemas["Webhook"] };
  /** Add a webhook, which answers its secret once, or change where it leads and what it hears */
  "PUT /api/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    body: {
      /** http:// or https://, of a public address unless EVERSTEP_WEBHOOK_ALLOW says else. */
      url: string;
      events: ("session.asks" | "session.ended" | "session.failed")[];
      /** Only of this agent's sessions; of all where it is absent. */
      agent_id?: string;
    };
    answer: {
      webhook_id: string;
      url: string;
      events: ("session.asks" | "session.ended" | "session.failed")[];
      agent_id: string | null;
      created_at: string;
      updated_at: string;
      /** Signs every delivery. It is not shown again. */
      secret?: string;
    };
  };
  /** Remove a webhook with all its deliveries */
  "DELETE /api/webhooks/{webhook_id}": { path: { webhook_id: string }; answer: null };
  /** Give a webhook a new secret, answered once; for a day the former one signs as well */
  "POST /api/webhooks/{webhook_id}/rotate-secret": {
    path: { webhook_id: string };
    answer: {
      webhook_id: string;
      url: string;
      events: ("session.asks" | "session.ended" | "session.failed")[];
      agent_id: string | null;
      created_at: string;
      updated_at: string;
      /** Signs every delivery. It is not shown again. */
      secret: string;
    };
  };
  /** List webhooks by id */
  "GET /api/webhooks": {
    query?: { limit?: number; offset?: number };
    answer: {
      webhooks: Schemas["Webhook"][];
    };
  };
  /** What was sent to a webhook and what is on its way, newest first */
  "GET /api/webhooks/{webhook_id}/deliveries": {
    path: { webhook_id: string };
    query?: { limit?: number; after?: string };
    answer: {
      deliveries: Schemas["WebhookDelivery"][];
      /** What the next page is asked for with (`after`); null where this is the last one. */
      next: string | null;
    };
  };
  /** Send a delivery again with the same id, or now where it waits for its next attempt */
  "POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/send-again": {
    path: { webhook_id: string; delivery_id: string };
    answer: Schemas["WebhookDelivery"];
  };
  /** Start the one chat of /agent_ws/ afresh */
  "POST /reset": {
    answer: {
      status: "reset";
    };
  };
};
