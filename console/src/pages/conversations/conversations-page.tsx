import { useState } from "react";
import { conversationHref, go } from "../../app/router.ts";
import { pathOf, post } from "../../data/api.ts";
import { myName } from "../../data/identity.ts";
import { type Conversation, client, useConversations } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { Field } from "../../ui/field.tsx";
import { textIn } from "../../ui/field-value.ts";
import { Icon } from "../../ui/icon.tsx";
import { Link } from "../../ui/link.tsx";
import { Age } from "../../ui/time.tsx";
import { attempt } from "../../ui/toast.tsx";
import { ConversationView } from "./conversation-view.tsx";

export default function ConversationsPage({ conversation_id }: { conversation_id: string | null }) {
  const { data: conversations, error } = useConversations();
  const [isCreating, setCreating] = useState(false);
  const Title = conversation_id === null ? "h1" : "h2";
  return (
    <div className="flex min-h-0 flex-1">
      <section
        aria-label="Conversations"
        className={`min-h-0 w-full flex-col border-line bg-surface md:flex md:w-60 md:shrink-0 md:border-r ${conversation_id === null ? "flex" : "hidden"}`}
      >
        <header className="flex h-[49px] shrink-0 items-center justify-between gap-2 border-b border-line px-4 py-2">
          <Title className="text-[16px] font-semibold">Conversations</Title>
          <Button aria-label="New conversation" className="px-2" onClick={() => setCreating(true)}>
            <Icon name="plus" className="size-3.5" />
          </Button>
        </header>
        {error && <Failure error={error} />}
        {conversations?.length === 0 && (
          <Empty title="No conversations yet">
            <button type="button" className="text-accent underline" onClick={() => setCreating(true)}>
              Create one
            </button>{" "}
            and add an agent to it.
          </Empty>
        )}
        <ul className="min-h-0 flex-1 overflow-y-auto">
          {conversations?.map((one) => (
            <Entry key={one.conversation_id} conversation={one} isOpen={one.conversation_id === conversation_id} />
          ))}
        </ul>
      </section>
      {conversation_id === null ? (
        <div className="hidden flex-1 md:block">
          {conversations && conversations.length > 0 && <Empty title="Select a conversation" />}
        </div>
      ) : (
        <ConversationView key={conversation_id} conversation_id={conversation_id} />
      )}
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </div>
  );
}

function Entry({
  conversation: { conversation_id, title, status, created_at },
  isOpen,
}: {
  conversation: Conversation;
  isOpen: boolean;
}) {
  return (
    <li>
      <Link
        href={conversationHref(conversation_id)}
        aria-current={isOpen ? "page" : undefined}
        className="flex items-baseline gap-2 border-b border-line px-4 py-2 -outline-offset-2 hover:bg-sunken aria-[current]:bg-accent-soft"
      >
        <span className="min-w-0 flex-1 truncate font-medium">{title ?? conversation_id}</span>
        <span className="text-[12px] text-muted">{status === "archived" ? "archived" : <Age at={created_at} />}</span>
      </Link>
    </li>
  );
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const create = (title: string) =>
    attempt(async () => {
      const made = await post<Conversation>("/api/conversations", {
        ...(title === "" ? {} : { title }),
        created_by: myName.value,
      });
      await post(pathOf("conversations", made.conversation_id, "participants"), { user_id: myName.value });
      void client.invalidateQueries({ queryKey: ["conversations"] });
      onClose();
      go(conversationHref(made.conversation_id));
    });
  return (
    <Dialog title="New conversation" onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void create(textIn(new FormData(event.currentTarget), "title").trim());
        }}
      >
        <Field name="title" label="Title" schema={{ type: "string" }} isRequired={false} problem={undefined} />
        <DialogButtons label="Create" onClose={onClose} />
      </form>
    </Dialog>
  );
}
