/** In order; each is applied once and never changed after it landed. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

  CREATE TABLE inbox (
    position INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL UNIQUE,
    room_id TEXT NOT NULL,
    event TEXT NOT NULL,
    is_done INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX inbox_open ON inbox (position) WHERE is_done = 0;

  CREATE TABLE outbox (
    position INTEGER PRIMARY KEY,
    transaction_id TEXT NOT NULL UNIQUE,
    device_id TEXT NOT NULL,
    room_id TEXT NOT NULL,
    content TEXT NOT NULL,
    edits TEXT,
    event_id TEXT,
    is_preview INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    outcome TEXT
  ) STRICT;
  CREATE INDEX outbox_open ON outbox (position) WHERE outcome IS NULL;
  CREATE INDEX outbox_events ON outbox (event_id);

  CREATE TABLE jobs (
    position INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,
    room_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    task TEXT NOT NULL,
    state TEXT NOT NULL,
    session_id TEXT,
    preview TEXT,
    notice TEXT
  ) STRICT;
  CREATE INDEX jobs_open ON jobs (position) WHERE state <> 'done';

  CREATE TABLE dialogs (
    user_id TEXT NOT NULL,
    room_id TEXT NOT NULL,
    question TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, room_id)
  ) STRICT;

  CREATE TABLE saves (
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    saved_at TEXT NOT NULL,
    PRIMARY KEY (user_id, name)
  ) STRICT;

  CREATE TABLE people (
    user_id TEXT PRIMARY KEY,
    language TEXT,
    streaming INTEGER
  ) STRICT;

  CREATE TABLE encrypted_rooms (room_id TEXT PRIMARY KEY) STRICT;

  CREATE TABLE watches (
    room_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    after_iteration INTEGER NOT NULL,
    PRIMARY KEY (room_id, session_id)
  ) STRICT;
  `,
  // What fails for a reason of its own is counted, and set aside with the reason.
  `
  ALTER TABLE jobs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE jobs ADD COLUMN error TEXT;
  ALTER TABLE inbox ADD COLUMN error TEXT;
  ALTER TABLE outbox ADD COLUMN error TEXT;
  `,
  // What watched sessions ask, and where it was said.
  `
  CREATE TABLE session_questions (
    room_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    question_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL UNIQUE,
    choices TEXT NOT NULL,
    PRIMARY KEY (room_id, session_id)
  ) STRICT;
  `,
  // End-to-end encryption: the crypto library's records, events whose key has not come, and ciphertexts to be sent again as they are.
  `
  CREATE TABLE crypto_schemas (device_id TEXT PRIMARY KEY, schema TEXT NOT NULL) STRICT;
  CREATE TABLE crypto_records (
    device_id TEXT NOT NULL,
    store TEXT NOT NULL,
    key BLOB NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (device_id, store, key)
  ) STRICT;

  CREATE TABLE undecrypted (
    event_id TEXT PRIMARY KEY,
    room_id TEXT NOT NULL,
    megolm_session TEXT NOT NULL,
    event TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    is_told INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  ALTER TABLE outbox ADD COLUMN ciphertext TEXT;
  ALTER TABLE encrypted_rooms ADD COLUMN is_refused INTEGER NOT NULL DEFAULT 1;
  `,
  // Reactions and their removal on their way out, requests whose receipt is awaited, and every question of a session, not the last only.
  `
  ALTER TABLE outbox ADD COLUMN kind TEXT NOT NULL DEFAULT 'message';
  ALTER TABLE outbox ADD COLUMN target TEXT;
  ALTER TABLE jobs ADD COLUMN action_id TEXT;

  CREATE TABLE questions (
    transaction_id TEXT PRIMARY KEY,
    room_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    question_id TEXT NOT NULL,
    choices TEXT NOT NULL,
    thumbs TEXT NOT NULL,
    is_watched INTEGER NOT NULL DEFAULT 1
  ) STRICT;
  CREATE INDEX questions_asked ON questions (room_id, session_id, question_id);
  INSERT INTO questions (transaction_id, room_id, session_id, question_id, choices, thumbs)
    SELECT transaction_id, room_id, session_id, question_id, choices,
      CASE WHEN json_array_length(choices) = 2 THEN choices ELSE 'null' END
    FROM session_questions;
  DROP TABLE session_questions;
  ALTER TABLE questions RENAME TO session_questions;
  `,
  // Threads, and rooms that took the place of others.
  `
  ALTER TABLE jobs ADD COLUMN thread TEXT;
  ALTER TABLE jobs ADD COLUMN chat TEXT;
  ALTER TABLE watches ADD COLUMN thread TEXT;

  CREATE TABLE room_upgrades (
    room_id TEXT PRIMARY KEY,
    replacement TEXT NOT NULL,
    user_id TEXT NOT NULL,
    is_joined INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  `,
];
