import { href, sessionHref } from "../../app/router.ts";
import { type MonikerVersion, useMonikerVersions } from "../../data/monikers.ts";
import { type JsonSchema, type MonikerInfo, useAgentNames } from "../../data/queries.ts";
import { CopyId } from "../../ui/copy.tsx";
import { Failure } from "../../ui/empty.tsx";
import { count, plural } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Page } from "../../ui/page.tsx";
import { Section } from "../../ui/section.tsx";
import { SessionName } from "../../ui/session-name.tsx";
import { Amount, Cell, Row, Table, WIDE } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { useTitle } from "../../ui/use-title.ts";

/** A moniker: its parameters, and the versions that sessions used. */
export function MonikerPage({ moniker }: { moniker: MonikerInfo }) {
  const { name, kind, description, params_schema } = moniker;
  useTitle(`${name} · Monikers`);
  return (
    <Page
      title={name}
      note={kind}
      aside={
        <Link
          href={href(["start"], { moniker: name })}
          className="inline-flex h-[30px] items-center rounded-md bg-accent px-2.5 font-medium text-on-accent hover:brightness-110"
        >
          Start {name}
        </Link>
      }
    >
      <div className="mx-auto flex max-w-4xl flex-col gap-5 p-4">
        <p>
          <Link href="/monikers" className="text-accent hover:underline">
            All monikers
          </Link>
        </p>
        <p>{description}</p>
        <Section title="Versions">
          <Versions name={name} />
        </Section>
        <Section title="Parameters">
          <Params schema={params_schema} />
        </Section>
      </div>
    </Page>
  );
}

function Versions({ name }: { name: string }) {
  const { data, error } = useMonikerVersions(name);
  const agents = useAgentNames(data?.versions.flatMap(({ latest_session_id }) => latest_session_id ?? []) ?? []);
  if (error) return <Failure error={error} />;
  if (!data) return <p className="text-muted">Loading…</p>;
  const { looked_at, total, versions, is_complete } = data;
  return (
    <>
      <Table
        label="Versions"
        heads={[
          "Version",
          { name: "Sessions", isAmount: true, isWide: true },
          { name: "First seen", isWide: true },
          { name: "Last seen", isWide: true },
          "Latest session",
        ]}
      >
        {versions.map((version) => (
          <VersionRow key={version.version} version={version} agent_id={agents.get(version.latest_session_id ?? "")} />
        ))}
      </Table>
      <p className="mt-1.5 text-[12px] text-muted">
        {total === 0
          ? "No session has used it yet. "
          : looked_at === total
            ? `From the steps of ${plural(total, "session")}. `
            : `From the steps of the ${count(looked_at)} most recently updated of ${plural(total, "session")}. `}
        {!is_complete && "More are being read… "}
        {total > 0 && (
          <Link href={href([], { moniker: name })} className="text-accent underline">
            All its sessions
          </Link>
        )}
      </p>
    </>
  );
}

function VersionRow({ version, agent_id }: { version: MonikerVersion; agent_id: string | undefined }) {
  const { version: id, is_current, sessions, first_step_at, last_step_at, latest_session_id } = version;
  return (
    <Row data-testid="version">
      <Cell className="whitespace-nowrap">
        {id === null ? <span className="text-muted">unknown</span> : <CopyId id={id} label="the version" />}{" "}
        {is_current && <span className="ml-2 text-[12px] font-medium text-good">current</span>}
      </Cell>
      <Amount className={WIDE}>{count(sessions)}</Amount>
      <Cell className={`whitespace-nowrap ${WIDE}`}>{first_step_at ? <Time at={first_step_at} withDate /> : "–"}</Cell>
      <Cell className={`whitespace-nowrap ${WIDE}`}>{last_step_at ? <Time at={last_step_at} withDate /> : "–"}</Cell>
      <Cell>
        {latest_session_id === null ? (
          "–"
        ) : (
          <Link href={sessionHref(latest_session_id)} className="text-accent hover:underline">
            <SessionName agent_id={agent_id} session_id={latest_session_id} />
          </Link>
        )}
      </Cell>
    </Row>
  );
}

function Params({ schema: { properties = {}, required = [] } }: { schema: JsonSchema }) {
  const params = Object.entries(properties);
  if (params.length === 0) return <p className="text-muted">This moniker takes no parameters.</p>;
  return (
    <Table label="Parameters" heads={["Name", "Type", "Default", { name: "Description", isWide: true }]}>
      {params.map(([name, { type, default: fallback, description }]) => (
        <Row key={name}>
          <Cell>
            <span className="font-mono text-[12px]">{name}</span>
            <span className="block text-[12px] text-muted md:hidden">{description}</span>
          </Cell>
          <Cell className="whitespace-nowrap">{type ?? "any"}</Cell>
          <Cell className="font-mono text-[12px] wrap-anywhere">
            {fallback !== undefined ? (
              JSON.stringify(fallback)
            ) : required.includes(name) ? (
              <span className="font-sans whitespace-nowrap text-bad">required</span>
            ) : (
              "–"
            )}
          </Cell>
          <Cell className={WIDE}>{description ?? "–"}</Cell>
        </Row>
      ))}
    </Table>
  );
}
