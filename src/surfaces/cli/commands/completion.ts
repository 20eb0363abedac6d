import type { Command } from "commander";
import { z } from "zod";
import { idSchema } from "../../../domain/ids.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { summariesSchema } from "../sessions.ts";

/** Argument names whose values are completed by asking the server. */
const KINDS = ["session", "moniker", "conversation"] as const;
type Kind = (typeof KINDS)[number];

const OFFERED = 100;

type Described = { name: string; options: string[]; kind: Kind | null };

/** A shell script that completes commands, their options, and names that a running server knows. */
export function completionScript(program: Command, shell: string): string {
  const commands = program.commands
    .filter((command) => !command.name().startsWith("__"))
    .map(
      (command): Described => ({
        name: command.name(),
        options: command.options.flatMap(({ long }) => long ?? []),
        kind: KINDS.find((kind) => command.registeredArguments[0]?.name() === kind) ?? null,
      }),
    );
  if (shell === "bash") return bash(commands);
  if (shell === "zsh") return `autoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
  if (shell === "fish") return fish(commands);
  throw new CommandError(`there is no completion for ${shell}; use bash, zsh or fish`, 2);
}

/** Candidates for a command's first argument. */
export async function completions(client: ApiClient, kind: string): Promise<void> {
  console.log((await namesOf(client, kind)).join("\n"));
}

async function namesOf(client: ApiClient, kind: string): Promise<string[]> {
  if (kind === "moniker") {
    const schema = z.object({ monikers: z.array(z.object({ name: z.string() })) });
    return (await client.get(schema, "/api/monikers")).monikers.map(({ name }) => name);
  }
  if (kind === "conversation") {
    const schema = z.object({ conversations: z.array(z.object({ conversation_id: idSchema })) });
    const { conversations } = await client.get(schema, "/api/conversations", { limit: OFFERED });
    return conversations.map(({ conversation_id }) => conversation_id);
  }
  const { sessions } = await client.get(summariesSchema, "/api/session-summaries", { limit: OFFERED });
  return [...new Set(sessions.flatMap(({ session_id, agent_id }) => [session_id, agent_id]))];
}

const bash = (commands: Described[]): string => `_everstep() {
  local current=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]} words="" kind=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commands.map(({ name }) => name).join(" ")}"
  else
    case "$command" in
${commands.map(({ name, options, kind }) => `      ${name}) words="${options.join(" ")}"; kind="${kind ?? ""}" ;;`).join("\n")}
    esac
    case "$current" in
      -*) ;;
      *) words=""
        if [ -n "$kind" ] && [ "$COMP_CWORD" -eq 2 ]; then words=$(everstep __complete "$kind" 2>/dev/null); fi ;;
    esac
  fi
  local IFS=$' \\n'
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _everstep everstep`;

const fish = (commands: Described[]): string =>
  [
    "complete -c everstep -f",
    `complete -c everstep -n __fish_use_subcommand -a "${commands.map(({ name }) => name).join(" ")}"`,
    ...commands.flatMap(({ name, options, kind }) => {
      const when = `complete -c everstep -n "__fish_seen_subcommand_from ${name}"`;
      const lines = options.map((option) => `${when} -l ${option.slice(2)}`);
      return kind === null ? lines : [...lines, `${when} -a "(everstep __complete ${kind} 2>/dev/null)"`];
    }),
  ].join("\n");
