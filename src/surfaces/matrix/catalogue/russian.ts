import type { Question as SessionAsk } from "../../../domain/question.ts";
import { isStoppedByLimit, type Session, type SessionStatus } from "../../../domain/session.ts";
import type { Question } from "../state/dialogs.ts";
import type { Catalogue } from "./catalogue.ts";
import { askedCall, choiceLines, detailLines } from "./choice-lines.ts";
import { day, russianHelp } from "./russian-help.ts";

const DONE = { pause: "приостановлена", resume: "продолжена", destroy: "завершена" } as const;
const STATUS = {
  ready: "готов",
  busy: "отвечает",
  asks: "ждёт ответа на свой вопрос",
  paused: "приостановлен; продолжит со следующим вопросом",
  failed: "сбой; следующий вопрос запустит его снова",
  away: "недоступен",
} as const;
const SESSION_STATUS: Record<SessionStatus, string> = {
  running: "работает",
  waiting: "ждёт",
  paused: "приостановлена",
  stopping: "останавливается",
  stopped: "остановлена",
  done: "выполнена",
  error: "сбой",
};
const names = (list: string[]): string => (list.length === 0 ? "нет" : list.map((name) => `\`${name}\``).join(", "));

/** Russian counts in three forms: 1 вопрос, 2 вопроса, 5 вопросов. */
const plural = (count: number, one: string, few: string, many: string): string => {
  const form = new Intl.PluralRules("ru").select(count);
  return `${count} ${form === "one" ? one : form === "few" ? few : many}`;
};

export const russian: Catalogue = {
  welcome: "Здравствуйте. Всё, что вы здесь пишете, получает агент; `!help` покажет, что ещё я умею.",
  encrypted:
    "Эта комната зашифрована, а зашифрованные сообщения я читать не умею. Создайте комнату без шифрования и пригласите меня туда.",
  undecryptable:
    "У меня нет ключа к этому сообщению и, возможно, к следующим. Отправьте его ещё раз; если не поможет, выйдите на своём устройстве и войдите снова.",
  verification: (emoji) => `Сравните с тем, что показывает ваш клиент: ${emoji}`,
  text_only: "Я понимаю только текст.",
  unknown_command: (name, nearest) =>
    `Команды \`!${name}\` нет.${nearest === null ? "" : ` Может быть, \`!${nearest}\`?`} Список команд: \`!help\`.`,
  queued: (ahead) =>
    `В очереди: перед вами ${plural(ahead, "вопрос", "вопроса", "вопросов")}. Ответы придут по порядку.`,
  agent_away: "Агент сейчас недоступен. Вопрос сохранён, ответ придёт, как только агент вернётся.",
  agent_failed: (reason) => `Агент не смог ответить: ${reason}`,
  agent_silent: "Агент ответил пустым сообщением.",
  undeliverable: "Ответ готов, но сервер отказался его принять.",
  set_aside: (reason) =>
    `Несколько попыток не удались, больше я не пробую (${reason}). Пожалуйста, спросите ещё раз другими словами.`,
  missed: "Сервер передал мне не все сообщения этой комнаты. Пожалуйста, повторите те, на которые я не ответил.",

  name_rule: "Такое имя не подходит: от 1 до 64 букв, цифр, `-` и `_`, в начале буква или цифра.",
  overwrite: (name, saved_at, isOwn) =>
    `${isOwn ? "Вы уже сохранили" : "Кто-то другой уже сохранил"} \`${name}\` ${day(saved_at)}. Перезаписать?`,
  saved: (name) => `Сохранено как \`${name}\`.`,
  save_failed: (name, reason) => `\`${name}\` не сохранено. Агент ответил: ${reason}`,
  save_failed_no_reset: "Сброса не было.",

  load_none: "Вы ещё ничего не сохраняли. Сохранить: `!save имя`.",
  load_list: (lines, total) =>
    `Ваши сохранения (${lines[0]?.number}–${lines.at(-1)?.number} из ${total}):\n\n${lines
      .map(({ number, name, saved_at }) => `${number}. \`${name}\` (${day(saved_at)})`)
      .join("\n")}`,
  load_no_more: "Продолжать нечего: список не открыт или показан целиком. Открыть список: `!load`.",
  load_out_of_range: (number, total) => `Номера ${number} нет. Выберите от 1 до ${total}; 0 — отмена.`,
  load_unknown: (name) => `У вас нет сохранения \`${name}\`. Список: \`!load\`.`,
  loaded: (name) => `Загружено: \`${name}\`.`,
  load_failed: (name, reason) => `\`${name}\` не загружено. Агент ответил: ${reason}`,

  reset_question: (name) =>
    `Агент забудет этот разговор, причём для всех, кто с ним говорит${name === null ? "" : ` (последнее сохранение: \`${name}\`)`}. Сохранённое останется. Сбросить?`,
  reset_in_thread: "У этой ветки свой разговор. Чтобы начать с чистого листа, откройте новую ветку.",
  reset_outcome(outcome) {
    switch (outcome.kind) {
      case "reset":
        return "Готово: агент начинает с чистого листа.";
      case "missing":
        return "Сброс недоступен: у этого агента нет такой функции. Обратитесь к администратору. Ничего не потеряно.";
      case "timeout":
        return "Агент не ответил на сброс вовремя. Ничего не потеряно, попробуйте позже.";
      case "refused":
        return `Агент отклонил сброс (${outcome.reason}). Ничего не потеряно.`;
    }
    return outcome satisfies never;
  },
  destroy_question: (session_id) => `Сессия \`${session_id}\` завершится навсегда. Завершить?`,
  superseded: (question) => `(Мой прежний вопрос — ${about(question)} — больше не действует.)`,
  nothing_waiting: "Ничего не ждёт ответа.",
  wants_number: (question) => `Последний вопрос — ${about(question)}. Ответьте номером; 0 — отмена.`,
  wants_yes_or_no: (question) => `Последний вопрос — ${about(question)}. Ответьте \`!yes\` или \`!no\`.`,
  left(question) {
    switch (question.kind) {
      case "reset":
        return "Отменено: сброса не было.";
      case "overwrite":
        return `Отменено: \`${question.name}\` не перезаписано.`;
      case "load":
        return "Отменено: ничего не загружено.";
      case "destroy":
        return `Отменено: \`${question.session}\` продолжает работу.`;
    }
    return question satisfies never;
  },
  effects: {
    do_it: "да",
    save_command: "!save имя",
    save_first: "сначала сохранить, потом выполнить",
    leave: "отмена",
    pick: "номер сохранения, которое загрузить",
    more: "следующая страница",
  },

  context: ({ name, loaded, status, error, waiting, tokens_last, tokens_total, saves }) =>
    [
      `**Контекст:** ${name === null ? "не сохранён" : `последнее сохранение \`${name}\``}`,
      `**Загружено:** ${names(loaded)}`,
      `**Агент:** ${STATUS[status]}${error === null ? "" : ` (${error})`}${waiting > 0 ? `, в очереди ${plural(waiting, "вопрос", "вопроса", "вопросов")}` : ""}`,
      `**Токены:** ${tokens_last} на последний ответ, ${tokens_total} всего`,
      `**Ваши сохранения:** ${saves.length === 0 ? "нет" : saves.map((save) => `\`${save.name}\` (${day(save.saved_at)})`).join(", ")}`,
    ].join("\n"),
  new_room: (link) => `Комната создана, приглашение отправлено: ${link}`,
  new_room_failed: (reason) => `Комнату создать не удалось: ${reason}`,
  room_topic: "Всё, что здесь написано, получает агент.",
  settings: ({ language, streaming }) =>
    `**Язык:** ${language} (\`!settings language en\` или \`ru\`)\n**Показ ответа по мере написания:** ${streaming ? "включён" : "выключен"} (\`!settings streaming on\` или \`off\`)`,
  settings_usage: "Напишите `!settings language en|ru` или `!settings streaming on|off`.",
  stopped: "*(остановлено)*",
  nothing_to_stop: "В этой комнате сейчас нет ответа, который можно остановить.",

  operators_only: "Это доступно только операторам.",
  runtime_unreachable: (reason) => `Не получилось: ${reason}`,
  agents: (lines) =>
    lines.length === 0
      ? "Агентов нет."
      : lines
          .map(
            ({ agent_id, moniker, status, steps, session_id }) =>
              `- **${agent_id}** (${moniker}): ${SESSION_STATUS[status]}, ${plural(steps, "шаг", "шага", "шагов")}, сессия \`${session_id}\``,
          )
          .join("\n"),
  session_missing: (command) => `Какая сессия? \`!${command} SESSION\`; список: \`!agents\`.`,
  session_unknown: (session) => `Сессии \`${session}\` нет. Список: \`!agents\`.`,
  session_ambiguous: (session, count) =>
    `На \`${session}\` начинаются имена ${plural(count, "сессии", "сессий", "сессий")}. Уточните имя.`,
  watching: (session_id) => `Слежу за \`${session_id}\`. Перестать: \`!watch off\`.`,
  watch_refused: (session_id, reason) => `Не могу следить за сессией \`${session_id}\`: ${reason}`,
  watch_over: (session_id, status) => `Сессия \`${session_id}\`: ${SESSION_STATUS[status]}.`,
  watch_stopped: (session_ids) =>
    session_ids.length === 0
      ? "Здесь я ни за чем не слежу."
      : `Больше не слежу за ${session_ids.map((id) => `\`${id}\``).join(", ")}.`,
  step: (session_id, iteration, text) => `**${session_id} №${iteration}** ${text}`,
  text_missing: (command) => `Напишите \`!${command} SESSION текст\`.`,
  asks: (session_id, question, has_thumbs) =>
    [
      `**${session_id}** ${askedText(question)}`,
      ...detailLines(question),
      choiceLines(question).join("\n"),
      has_thumbs
        ? "Ответьте на это сообщение номером или поставьте 👍 либо 👎."
        : `Ответьте на это сообщение${question.choices ? " номером" : ""}.`,
    ]
      .filter((part) => part !== "")
      .join("\n\n"),
  asks_nothing: (session_id) => `\`${session_id}\` уже не спрашивает об этом.`,
  receipt: (iteration) => (iteration === null ? "✅" : `✅ шаг ${iteration}`),
  inbox_empty: "Ваше внимание нигде не требуется.",
  inbox: (sessions) => sessions.map(needOf).join("\n"),
  start_usage: "Напишите `!start MONIKER ключ=значение …`.",
  started: (session_id) =>
    `Сессия \`${session_id}\` запущена, её шаги появятся здесь. Перестать следить: \`!watch off\`.`,
  fork_usage:
    "Напишите `!fork N текст` для сессии, за которой я здесь слежу, или `!fork SESSION N текст`; N — номер шага.",
  fork_which: (watched) =>
    `${watched === 0 ? "Здесь я ни за чем не слежу" : `Здесь я слежу за ${watched} сессиями`}. Напишите \`!fork SESSION N текст\`.`,
  forked: (session_id, iteration, forked_id) =>
    `\`${forked_id}\` продолжает \`${session_id}\` с шага ${iteration}, шаги появятся здесь. Перестать следить: \`!watch off\`.`,
  cost_usage: "Напишите `!cost` или `!cost agent`, `!cost model`, `!cost day`.",
  costs: ({ since, total, groups }) =>
    [
      `**$${total.cost_usd.toFixed(4)}** с ${day(since)}: ${plural(total.sessions, "сессия", "сессии", "сессий")}, ${tokens(total.tokens_used)}`,
      groups
        .slice(0, 10)
        .map(({ key, cost_usd, tokens_used }) => `- ${key ?? "(нет)"}: $${cost_usd.toFixed(4)}, ${tokens(tokens_used)}`)
        .join("\n"),
    ]
      .filter((part) => part !== "")
      .join("\n\n"),
  controlled: (verb, session_id) => `Сессия \`${session_id}\` ${DONE[verb]}.`,
  control_rejected: (verb, session_id, reason) => `Сессия \`${session_id}\` не ${DONE[verb]}: ${reason}`,

  help: russianHelp,
};

const tokens = (count: number): string => plural(count, "токен", "токена", "токенов");

function askedText(question: SessionAsk): string {
  const call = askedCall(question);
  if (!call) return `**спрашивает:** ${question.text}`;
  switch (call.kind) {
    case "tool":
      return `**хочет выполнить** \`${call.tool}\` с аргументами:`;
    case "in_doubt":
      return `**прервалась** во время \`${call.tool}\`: вызов мог и состояться. Его аргументы:`;
  }
  return call.kind satisfies never;
}

function needOf(session: Session): string {
  const { session_id, agent_id, status, question, last_error, stop_reason } = session;
  const title = `- **${agent_id}**, \`${session_id}\`:`;
  if (question) return `${title} спрашивает: ${question.text} (\`!answer ${session_id} …\`)`;
  if (isStoppedByLimit(session)) return `${title} остановлена по пределу ${stop_reason}`;
  const next = `\`!resume ${session_id}\``;
  return status === "error"
    ? `${title} сбой: ${last_error ?? "причина неизвестна"} (${next})`
    : `${title} удержана (${next})`;
}

function about(question: Question): string {
  switch (question.kind) {
    case "reset":
      return "сбрасывать ли";
    case "overwrite":
      return `перезаписать ли \`${question.name}\``;
    case "load":
      return "что загрузить";
    case "destroy":
      return `завершить ли \`${question.session}\``;
  }
  return question satisfies never;
}
