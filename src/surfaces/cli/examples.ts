import { asTyped } from "./as-typed.ts";

/** An example call per command, without the leading `everstep`. */
const EXAMPLES: Readonly<Record<string, string>> = {
  create: "create joke --param subject=tea --option max_steps=5",
  ps: "ps --status running --agent joker",
  logs: "logs joker -f",
  search: 'search "green tea" --agent joker',
  archive: "archive --older-than 30d --dry-run",
  monikers: "monikers count",
  conversations: "conversations CONVERSATION",
  open: "open SESSION",
  tools: "tools --session SESSION",
  costs: "costs --by model --since 2026-01-31",
  workers: "workers --url https://agents.example.org --token TOKEN",
  pause: 'pause SESSION --reason "lunch"',
  resume: "resume SESSION --option max_steps=100",
  destroy: "destroy SESSION",
  interrupt: 'interrupt SESSION "tell one about coffee" --now',
  fork: 'fork SESSION --at 12 --guidance "try it without tools"',
  say: "say CONVERSATION hello, everyone",
  drop: "drop ACTION",
  inbox: "inbox --agent joker",
  answer: "answer SESSION yes",
  release: "release --all",
  chat: "chat",
  reload: "reload",
  rerun: "rerun SESSION 12 --model openai/gpt-5",
  replay: "replay SESSION --from 10",
  mcp: "mcp --url http://127.0.0.1:4180",
  demo: "demo --fast",
  webhooks: "webhooks add ops https://example.com/everstep --event session.asks",
  completion: "completion bash >> ~/.bashrc",
};

export function exampleOf(command: string): string {
  const example = EXAMPLES[command];
  return example === undefined ? "" : `\nExample:\n  ${asTyped()} ${example}`;
}
