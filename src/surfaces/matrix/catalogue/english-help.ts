import type { Catalogue } from "./catalogue.ts";

/** A date as a person reads it: the day and the minute, UTC. */
export const day = (time: string): string => time.slice(0, 16).replace("T", " ");

export const englishHelp: Catalogue["help"] = {
  title: "What you write goes to the agent. Besides, I know:",
  operators: "For operators:",
  more: "`!help command` tells more.",
  commands: {
    save: {
      usage: "!save [name]",
      about: "Has the agent save the conversation as `contexts/NAME.md`. Without a name it is named after the time.",
    },
    load: {
      usage: "!load [name]",
      about: "Has the agent use a saved conversation as background. Without a name I list yours; answer with a number.",
    },
    more: { usage: "!more", about: "The next page of a list that `!load` opened." },
    reset: { usage: "!reset", about: "Makes the agent forget the conversation, after you confirmed it." },
    context: { usage: "!context", about: "What is loaded, how the agent is, tokens, your saves." },
    new: { usage: "!new [name]", about: "Makes another room with me and invites you." },
    settings: { usage: "!settings", about: "Your language, and whether answers show while they are written." },
    help: { usage: "!help [command]", about: "This list, or more about one of it." },
    yes: { usage: "!yes", about: "Agrees to what I asked last. A 👍 on the question does, too." },
    no: { usage: "!no", about: "Declines what I asked last. A 👎 on the question does, too." },
    cancel: { usage: "!cancel", about: "Leaves whatever I wait for." },
    stop: { usage: "!stop", about: "Cuts the answer in this room short." },
    agents: { usage: "!agents", about: "The agents of the runtime and their latest sessions." },
    watch: { usage: "!watch SESSION", about: "Tells a session's steps here, until it ends or you say `!watch off`." },
    guide: { usage: "!guide SESSION text", about: "Gives a session guidance for its next step." },
    answer: {
      usage: "!answer SESSION text",
      about:
        "Answers what a session asks: a choice by its number or value, a form as `name=value` words, else plain text.",
    },
    pause: { usage: "!pause SESSION", about: "No further step starts; the one that runs is kept." },
    resume: { usage: "!resume SESSION", about: "Goes on, or tries a failed step again." },
    destroy: { usage: "!destroy SESSION", about: "Ends a session for good, after you confirmed it." },
  },
};
