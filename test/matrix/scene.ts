import { agentUrl } from "../agent-ws/raw-client.ts";
import type { Environment } from "../server/spawn-everstep.ts";
import { BotProcess } from "./bot-process.ts";
import { Person } from "./person.ts";

/** A homeserver with a bot, and the people who join. */
export class Scene implements AsyncDisposable {
  readonly url: string;
  readonly #people: Person[] = [];
  readonly #bots: BotProcess[] = [];

  constructor(url: string) {
    this.url = url;
  }

  async person(name: string, options: { follows?: boolean; encrypts?: boolean } = {}): Promise<Person> {
    const person = await Person.register(this.url, name, options);
    this.#people.push(person);
    return person;
  }

  async bot(environment: Environment): Promise<BotProcess> {
    const account = await this.person("bot", { follows: false });
    const bot = await BotProcess.start({
      MATRIX_HOMESERVER: this.url,
      MATRIX_USER_ID: account.user_id,
      MATRIX_ACCESS_TOKEN: account.access_token,
      MATRIX_ALLOWED_USERS: "@*",
      ...environment,
    });
    this.#bots.push(bot);
    return bot;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const person of this.#people) person[Symbol.dispose]();
    for (const bot of this.#bots) await bot[Symbol.asyncDispose]();
  }
}

export const agentEnvironment = (url: string): Environment => ({ AGENT_WS_URL: agentUrl(url), AGENT_BASE_URL: url });
