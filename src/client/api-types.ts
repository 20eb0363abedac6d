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
    /** Time limit of one attempt at a step, in seconds. Default 600. */
    step_timeout_s?: number;
    retry?: {
      max_attempts?: number;
      backoff_ms?: number;
      outage_s?: number;
    };
    outlives_parent?: boolean;
    hold_before?: string[];
    /** Globs over tool names; the first list that matches, in the order deny, ask, run, decides. */
    tools?: {
      deny?: string[];
      ask?: string[];
      run?: string[];
    };
    /** provider/model. Default: EVERSTEP_MODEL. */
    model?: string;
    /** How the model answers. Default: the provider's settings. */
    model_settings?: {
      temperature?: number;
      max_output_tokens?: number;
      reasoning?: "none" | "minimal" | "low" | "medium" | "high";
    };
    /** Tried in order if the model is unreachable or refuses the request. */
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
    /** The agent's sessions, counted by status. */
    counts: {
      running: number;
      waiting: number;
      paused: number;
      stopping: number;
      stopped: number;
      done: number;
      error: number;
    };
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
    /** Time limit of one attempt at a step, in seconds. Default 600. */
    step_timeout_s?: number;
    retry?: {
      max_attempts: number;
      backoff_ms: number;
      outage_s?: number;
    };
    outlives_parent?: boolean;
    hold_before?: string[];
    /** Globs over tool names; the first list that matches, in the order deny, ask, run, decides. */
    tools?: {
      deny?: string[];
      ask?: string[];
      run?: string[];
    };
    /** provider/model. Default: EVERSTEP_MODEL. */
    model?: string;
    /** How the model answers. Default: the provider's settings. */
    model_settings?: {
      temperature?: number;
      max_output_tokens?: number;
      reasoning?: "none" | "minimal" | "low" | "medium" | "high";
    };
    /** Tried in order if the model is unreachable or refuses the request. */
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
    crashes: number;
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
  Volume: {
    volume_id: string;
    state: "writing" | "moving" | "archived" | "dropped";
    location: string;
    format: number;
    created_at: string;
    sessions: number;
    steps: number;
    messages: number;
    bytes: number;
    oldest_ended_at: string | null;
    newest_ended_at: string | null;
    checksum: number | null;
  };
  ArchiveJob: {
    operation: "archive" | "restore" | "drop";
    dry_run: boolean;
    state: "running" | "done" | "failed";
    started_at: string;
    ended_at: string | null;
    volumes: number;
    sessions: number;
    steps: number;
    messages: number;
    bytes: number;
    error: string | null;
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
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
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
      /** Pass as `after` to get the next page; null on the last page. */
      next: string | null;
    };
  };
  /** An agent's defaults */
  "GET /api/agents/{agent_id}/config": { path: { agent_id: string }; answer: Schemas["AgentConfig"] };
  /** Set the defaults for an agent's new sessions */
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
  /** Pause the session; a running step may finish, no further one starts */
  "POST /api/sessions/{session_id}/pause": {
    path: { session_id: string };
    body?: {
      reason?: string;
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Pause the session; a running step may finish, no further one starts */
  "POST /api/agents/{agent_id}/pause": {
    path: { agent_id: string };
    body?: {
      reason?: string;
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Continue a paused session, retry a failed step, or continue past a limit that the options raise */
  "POST /api/sessions/{session_id}/resume": {
    path: { session_id: string };
    body?: {
      reason?: string;
      options?: Schemas["RequestedOptionsInput"];
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Continue a paused session, retry a failed step, or continue past a limit that the options raise */
  "POST /api/agents/{agent_id}/resume": {
    path: { agent_id: string };
    body?: {
      reason?: string;
      options?: Schemas["RequestedOptionsInput"];
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Send guidance to the next step, or interrupt the running one with it */
  "POST /api/sessions/{session_id}/interrupt": {
    path: { session_id: string };
    body: {
      guidance: unknown;
      mode?: "next" | "now";
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Send guidance to the next step, or interrupt the running one with it */
  "POST /api/agents/{agent_id}/interrupt": {
    path: { agent_id: string };
    body: {
      guidance: unknown;
      mode?: "next" | "now";
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** End the session permanently */
  "POST /api/sessions/{session_id}/destroy": {
    path: { session_id: string };
    body?: {
      reason?: string;
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** End the session permanently */
  "POST /api/agents/{agent_id}/destroy": {
    path: { agent_id: string };
    body?: {
      reason?: string;
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Start a new session from one of this session's steps */
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
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
      metadata?: { [key: string]: unknown };
    };
    answer: {
      action_id: string;
      agent_id: string;
      session_id: string;
    };
  };
  /** Answer the session's question */
  "POST /api/sessions/{session_id}/answer": {
    path: { session_id: string };
    body: {
      answer: unknown;
      question_id?: string;
      /** The sender; stored as `metadata.user_id`. */
      user_id?: string;
      /** Stored with the action. A `request_id` in it makes the request idempotent. */
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
      parent_session_id?: string;
      sort?: "created_at" | "updated_at";
      after?: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      sessions: Schemas["Session"][];
      /** Pass as `after` to get the next page; null on the last page. */
      next: string | null;
    };
  };
  /** One session */
  "GET /api/sessions/{session_id}": {
    path: { session_id: string };
    answer: {
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
      archived?: {
        /** Rows of steps in volumes, which are read from there. */
        steps: number;
        /** Rows of steps that are gone for good. */
        dropped_steps: number;
      };
    };
  };
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
      with_calls?: boolean;
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
        crashes: number;
        calls?: {
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
  /** When a session's steps ran and what they called, without their texts */
  "GET /api/step-spans": {
    query: { session_id: string; min_iteration?: number; max_iteration?: number; limit?: number; offset?: number };
    answer: {
      spans: {
        id: string;
        session_id: string;
        iteration: number;
        step_token: string;
        status: "ok" | "error";
        created_at: string;
        latency_ms: number;
        attempts: number;
        crashes: number;
        tokens_used: number;
        cost_usd: number;
        error: string | null;
        guidance: number;
        rests: "asks" | "waits" | null;
        calls: {
          kind: "model" | "tool";
          name: string;
          latency_ms: number;
          failed: boolean;
        }[];
      }[];
    };
  };
  /** Rerun a recorded step on the current code and compare the results; nothing is written */
  "POST /api/sessions/{session_id}/steps/{iteration}/rerun": {
    path: { session_id: string; iteration: number };
    body?: {
      /** provider/model, instead of the configured one. */
      model?: string;
      /** Replaces the guidance that the step received: a list of pieces, or a single piece that is not a list. */
      guidance?: unknown;
      /** Replaces the state that the step started from. */
      state?: { [key: string]: unknown };
    };
    answer: {
      /** What the step returned; null if it failed. */
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
      /** Whether the result differs from the recorded step. */
      differs: boolean;
      /** The frame's fields that differ; `error` if only one of the two failed. */
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
      parent_session_id?: string;
      since?: string;
      sort?: "created_at" | "updated_at";
      after?: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      sessions: Schemas["SessionSummary"][];
      /** The total number of matches. */
      total: number;
      /** Matches by status, regardless of the `status` filter. */
      counts: {
        running: number;
        waiting: number;
        paused: number;
        stopping: number;
        stopped: number;
        done: number;
        error: number;
      };
      /** False if too many sessions match `q` or `since` to be counted: `total` and `counts` are then lower bounds. */
      exact: boolean;
      /** Pass as `after` to get the next page; null on the last page. */
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
  /** Take back guidance that no step has used yet; 202 if the outcome is not known within five seconds */
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
  /** Add a person or a session */
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
  /** Remove a participant */
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
  /** Post a message; the addressed sessions get it as guidance */
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
  /** The available monikers */
  "GET /api/monikers": {
    answer: {
      monikers: {
        name: string;
        kind: "continuous" | "finite" | "reactive";
        description: string;
        params_schema: { [key: string]: JsonValue };
        /** Changes whenever its code or prompts do. */
        version: string | null;
      }[];
      /** Files and workers that could not be loaded, why, and which moniker keeps its last good version. */
      failed?: {
        file: string;
        moniker: string | null;
        error: string;
      }[];
    };
  };
  /** Reload monikers whose code or prompts changed; a running step finishes on the old code */
  "POST /api/monikers/reload": {
    answer: {
      /** All except the built-in ones. */
      monikers: {
        name: string;
        version: string;
        change: "added" | "changed" | "removed" | "unchanged";
      }[];
      /** Files and workers that could not be loaded, why, and which moniker keeps its last good version. */
      failed: {
        file: string;
        moniker: string | null;
        error: string;
      }[];
    };
  };
  /** Search steps and messages, ignoring case and diacritics */
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
      /** Sessions whose steps are archived, which is not searched, of those that were asked for. */
      archives_skipped: number;
    };
  };
  /** Release sessions that are held since the start (EVERSTEP_START_HELD=1) */
  "POST /api/system/release": {
    body?: {
      session_ids?: string[];
      agent_id?: string;
      all?: boolean;
    };
    answer: {
      /** Sessions that continue in the responding process. */
      released: number;
    };
  };
  /** Whether the server works */
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
        /** If the server has a token, only for requests with it. */
        name?: string;
        started_at: string;
        takes_sessions: boolean;
        owned_sessions: number;
        actions_under_way: number;
        silent_ms: number;
        /** How long a step has been blocking the process; 0 if none does. */
        blocked_ms: number;
      }[];
      /** Why the store cannot be read or written. */
      error?: string;
    };
  };
  /** The tools that steps can call, and their servers */
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
        /** May overwrite or delete existing data. */
        destructive: boolean;
        policy: "run" | "ask" | "deny";
      }[];
      servers: {
        name: string;
        status: "ready" | "connecting" | "failed" | "stopped";
        /** Why it cannot be used; null if it can, or if that is not known yet. */
        error: string | null;
      }[];
    };
  };
  /** Try a read-only tool; any other is refused */
  "POST /api/tools/try": {
    body: {
      /** `<server>/<tool>`, as `GET /api/tools` lists it. */
      name: string;
      args?: { [key: string]: unknown };
    };
    answer: {
      /** `ask` and `wait`: in a step, the call would ask people or wait. */
      kind: "result" | "ask" | "wait";
      text: string;
      is_error: boolean;
      latency_ms: number;
    };
  };
  /** The versions of a moniker that sessions used */
  "GET /api/monikers/{name}/versions": {
    path: { name: string };
    answer: {
      /** Sessions examined: the 50 most recently updated, or all. */
      looked_at: number;
      /** Sessions of the moniker. */
      total: number;
      /** False while some of their steps are not read yet: a request reads 20000 of them, the next one goes on. */
      is_complete: boolean;
      /** The current one first, then those that were used last. */
      versions: {
        /** Null: from before versions were recorded. */
        version: string | null;
        is_current: boolean;
        sessions: number;
        first_step_at: string | null;
        last_step_at: string | null;
        latest_session_id: string | null;
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
      /** The runtimes of this process; none if it only serves. */
      runtimes: {
        worker_id: string;
        pid: number;
        started_at: string;
        /** Running steps. */
        running_steps: number;
        /** Steps that wait for a slot. */
        waiting_steps: number;
        max_running_steps: number;
        /** Whether sessions are held since the start until they are released. */
        holds_sessions: boolean;
      }[];
      /** The processes that share the store, on PostgreSQL. */
      workers?: {
        /** If the server has a token, only for requests with it. */
        name?: string;
        started_at: string;
        takes_sessions: boolean;
        owned_sessions: number;
        actions_under_way: number;
        silent_ms: number;
        /** How long a step has been blocking the process; 0 if none does. */
        blocked_ms: number;
      }[];
      process: {
        node: string;
        uptime_s: number;
        memory_bytes: number;
      };
      /** Throughput of the last half hour in buckets of five seconds, as far back as known. */
      samples: {
        at: string;
        steps: number;
        errors: number;
        tokens: number;
        latency_ms: number;
      }[];
    };
  };
  /** What sessions cost, by start date, agent or model */
  "GET /api/costs": {
    query?: { by?: "day" | "agent" | "model"; since?: string };
    answer: {
      by: "day" | "agent" | "model";
      since: string;
      /** The date of the newest entry in the price catalog; later changes are missing. */
      prices_as_of: string;
      total: {
        sessions: number;
        tokens_used: number;
        /** Usage without a known price counts as 0. */
        cost_usd: number;
      };
      /** By `key`: a day, an agent's id, or a model; null for sessions without a model. */
      costs: {
        sessions: number;
        tokens_used: number;
        /** Usage without a known price counts as 0. */
        cost_usd: number;
        key: string | null;
      }[];
    };
  };
  /** One webhook */
  "GET /api/webhooks/{webhook_id}": { path: { webhook_id: string }; answer: Schemas["Webhook"] };
  /** Add a webhook, which returns its secret once, or change its address and events */
  "PUT /api/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    body: {
      /** http:// or https://, at a public address unless EVERSTEP_WEBHOOK_ALLOW permits another. */
      url: string;
      events: ("session.asks" | "session.ended" | "session.failed")[];
      /** Only for this agent's sessions. Default: all. */
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
  /** Create a new secret, returned once; the previous one also signs for one more day */
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
  /** A webhook's deliveries, newest first */
  "GET /api/webhooks/{webhook_id}/deliveries": {
    path: { webhook_id: string };
    query?: { limit?: number; after?: string };
    answer: {
      deliveries: Schemas["WebhookDelivery"][];
      /** Pass as `after` to get the next page; null on the last page. */
      next: string | null;
    };
  };
  /** Resend a delivery with the same id, or send a waiting one now */
  "POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/send-again": {
    path: { webhook_id: string; delivery_id: string };
    answer: Schemas["WebhookDelivery"];
  };
  /** Stage a consistent copy of all data in a folder on the server's machine, for `everstep backup`; agents keep running */
  "POST /api/backups": {
    answer: {
      /** Removed by DELETE, by the next backup and when the server starts. */
      folder: string;
    };
  };
  /** Remove the staged copy */
  "DELETE /api/backups": { answer: null };
  /** The volumes that hold archived history, and the job that this server runs or ran last */
  "GET /api/archives": {
    answer: {
      job: Schemas["ArchiveJob"] | null;
      /** Oldest first. */
      volumes: Schemas["Volume"][];
    };
  };
  /** Move the steps and messages of sessions that ended long ago into a volume, bring sessions back, or drop whole volumes; `GET /api/archives` tells how it goes */
  "POST /api/archives": {
    body:
      | {
          operation: "archive";
          /** How long ago they ended: 12h, 30d, 8w. */
          older_than: string;
          /** Only count. */
          dry_run?: boolean;
        }
      | {
          operation: "restore";
          session_ids: string[];
        }
      | {
          operation: "drop";
          /** How long ago they ended: 12h, 30d, 8w. */
          older_than: string;
          /** Only count. */
          dry_run?: boolean;
        };
    answer: Schemas["ArchiveJob"];
  };
  /** Reset the chat of /agent_ws/ */
  "POST /reset": {
    answer: {
      status: "reset";
    };
  };
};
