import { href } from "../../app/router.ts";
import { reloadMonikers, useMonikerCatalog } from "../../data/monikers.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Page } from "../../ui/page.tsx";
import { attempt, tell } from "../../ui/toast.tsx";
import { MonikerPage } from "./moniker-page.tsx";

/** All monikers, or one of them. */
export default function MonikersPage({ name }: { name: string | null }) {
  const { data, error } = useMonikerCatalog();
  if (name !== null) {
    const moniker = data?.monikers.find((entry) => entry.name === name);
    if (moniker) return <MonikerPage moniker={moniker} />;
    if (data)
      return (
        <Empty title={`No moniker named ${name}`}>
          <Link href="/monikers" className="text-accent underline">
            All monikers
          </Link>
        </Empty>
      );
  }
  return (
    <Page
      title="Monikers"
      note={data && plural(data.monikers.length, "moniker")}
      aside={<Button onClick={() => void reload()}>Load changed code</Button>}
    >
      {error && <Failure error={error} />}
      {!data && !error && <p className="p-6 text-muted">Loading…</p>}
      {data?.failed?.map(({ file, moniker, error: reason }) => (
        <div key={file} role="alert" className="m-4 rounded-lg bg-bad-soft px-4 py-3 text-bad wrap-anywhere">
          <p className="font-medium">
            {file} could not be loaded{moniker === null ? "" : `; ${moniker} keeps its previous version`}
          </p>
          <p>{reason}</p>
        </div>
      ))}
      <ul>
        {data?.monikers.map((moniker) => (
          <li key={moniker.name} className="border-b border-line bg-surface px-4 py-2" data-testid="moniker">
            <p className="flex flex-wrap items-baseline gap-x-3">
              <Link href={href(["monikers", moniker.name])} className="font-medium hover:underline">
                {moniker.name}
              </Link>
              <span className="text-[12px] text-muted">{moniker.kind}</span>
              {moniker.version !== null && <span className="font-mono text-[12px] text-muted">{moniker.version}</span>}
            </p>
            <p className="text-muted">{moniker.description}</p>
          </li>
        ))}
      </ul>
    </Page>
  );
}

const reload = () =>
  attempt(async () => {
    const changed = await reloadMonikers();
    tell(changed === 0 ? "Nothing changed" : `${plural(changed, "moniker")} changed`);
  });
