import type { Catalogue } from "./catalogue.ts";

/** A date as a person reads it: the day and the minute, UTC. */
export const day = (time: string): string => {
  const [year, month, date] = time.slice(0, 10).split("-");
  return `${date}.${month}.${year} ${time.slice(11, 16)}`;
};

export const russianHelp: Catalogue["help"] = {
  title: "Всё, что вы пишете, получает агент, кроме этих команд:",
  operators: "Для операторов:",
  more: "`!help команда` расскажет подробнее.",
  commands: {
    save: {
      usage: "!save [имя]",
      about: "Агент сохранит разговор в `contexts/ИМЯ.md`. Без имени название составляется по времени.",
    },
    load: {
      usage: "!load [+][имя]",
      about:
        "Агент возьмёт сохранённый разговор за основу вместо загруженного прежде, а с `+` — вдобавок к нему. Без имени покажу ваш список; ответьте номером.",
    },
    more: { usage: "!more", about: "Следующая страница списка, который открыл `!load`." },
    reset: { usage: "!reset", about: "Агент забудет разговор, после вашего подтверждения." },
    context: { usage: "!context", about: "Что загружено, чем занят агент, токены, ваши сохранения." },
    new: { usage: "!new [имя]", about: "Создам ещё одну комнату и приглашу вас." },
    settings: { usage: "!settings", about: "Ваш язык и показ ответа по мере написания." },
    help: { usage: "!help [команда]", about: "Этот список или подробности о команде." },
    yes: { usage: "!yes", about: "Согласие с моим последним вопросом. Реакция 👍 на вопрос тоже подойдёт." },
    no: { usage: "!no", about: "Отказ. Реакция 👎 на вопрос тоже подойдёт." },
    cancel: { usage: "!cancel", about: "Отменить мой последний вопрос." },
    stop: { usage: "!stop", about: "Остановить ответ в этой комнате." },
    agents: { usage: "!agents", about: "Агенты и их последние сессии." },
    watch: {
      usage: "!watch SESSION",
      about: "Показывать здесь шаги сессии, пока она не закончится или до `!watch off`.",
    },
    answer: {
      usage: "!answer SESSION текст",
      about:
        "Ответить на вопрос сессии: вариант по номеру или значению, форму словами `имя=значение`, иначе простым текстом. Можно и просто ответить на сообщение с вопросом.",
    },
    guide: { usage: "!guide SESSION текст", about: "Дать сессии указание для следующего шага." },
    inbox: {
      usage: "!inbox",
      about:
        "Сессии, которым нужны вы: их вопросы, на которые можно ответить сообщением или реакцией, а также сбои и удержанные сессии.",
    },
    start: {
      usage: "!start MONIKER ключ=значение …",
      about: "Запустить сессию с этими параметрами и показывать здесь её шаги.",
    },
    fork: {
      usage: "!fork [SESSION] N текст",
      about:
        "Продолжить сессию с шага N как новую, с текстом в качестве указания. Без имени — та, за которой я здесь слежу.",
    },
    cost: { usage: "!cost [agent|model|day]", about: "Стоимость сессий, по умолчанию по агентам." },
    pause: { usage: "!pause SESSION", about: "Новые шаги не начнутся; текущий сохранится." },
    resume: { usage: "!resume SESSION", about: "Продолжить или повторить неудавшийся шаг." },
    destroy: { usage: "!destroy SESSION", about: "Завершить сессию навсегда, после вашего подтверждения." },
  },
};
