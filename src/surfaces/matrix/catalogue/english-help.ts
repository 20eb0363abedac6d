import type { Catalogue } from "./catalogue.ts";

/** A date as a person reads it: the day and the minute, UTC. */
export const day = (time: string): string => time.slice(0, 16).replace("T", " ");

export const englishHelp: Catalogue["help"] = {
  title: "Everything you write goes to the agent, except these commands:",
  operators: "For operators:",
  more: "`!help command` describes one of them.",
  commands: {
    save: {
      usage: "!save [name]",
      about: "Has the agent save the conversation as `contexts/NAME.md`. Without a name it is named after the time.",
    },
    load: {
      usage: "!load [+][name]",
      about:
        "Has the agent use a saved conversation as background, in place of what was loaded before; with `+` beside it. Without a name I list yours; answer with a number.",
    },
    more: { usage: "!more", about: "The next page of a list that `!load` opened." },
    reset: { usage: "!reset", about: "Makes the agent forget the conversation, once you have confirmed it." },
    context: { usage: "!context", about: "What is loaded, what the agent is doing, tokens, your saved contexts." },
    new: { usage: "!new [name]", about: "Creates another room with me and invites you." },
    settings: { usage: "!settings", about: "Your language, and whether answers appear while they are written." },
    help: { usage: "!help [command]", about: "This list, or one of its commands." },
    yes: { usage: "!yes", about: "Yes to my last question. A 👍 on it works, too." },
    no: { usage: "!no", about: "No to my last question. A 👎 on it works, too." },
    cancel: { usage: "!cancel", about: "Cancels my last question." },
    stop: { usage: "!stop", about: "Stops the answer in this room." },
    agents: { usage: "!agents", about: "The agents of the runtime and their latest sessions." },
    watch: { usage: "!watch SESSION", about: "Shows a session's steps here, until it ends or you say `!watch off`." },
    guide: { usage: "!guide SESSION text", about: "Gives a session guidance for its next step." },
    answer: {
      usage: "!answer SESSION text",
      about:
        "Answers what a session asks: a choice by its number or value, a form as `name=value` words, else plain text. A reply to the question works, too.",
    },
    inbox: {
      usage: "!inbox",
      about:
        "Sessions that need you: what they ask, to be answered by a reply or a reaction, and which ones failed or are held.",
    },
    start: {
      usage: "!start MONIKER key=value …",
      about: "Starts a session with these inputs and shows its steps here.",
    },
    fork: {
      usage: "!fork [SESSION] N text",
      about:
        "Continues a session from its step N as a new one, with the text as guidance. Without a session it is the one watched here.",
    },
    cost: { usage: "!cost [agent|model|day]", about: "What sessions cost, by agent if you name nothing else." },
    pause: { usage: "!pause SESSION", about: "No further step starts; the one that runs is kept." },
    resume: { usage: "!resume SESSION", about: "Resumes a session, or tries its failed step again." },
    destroy: { usage: "!destroy SESSION", about: "Ends a session for good, once you have confirmed it." },
  },
};
