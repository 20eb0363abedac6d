import { useWorkspaceFile } from "../../data/workspace.ts";
import { LineDiff } from "../../ui/line-diff.tsx";
import type { FileChange } from "./file-change.ts";

type FileDiffProps = {
  change: FileChange;
  /** Whether it is a workspace file, which can be read. */
  isInWorkspace: boolean;
};

/** A diff of what a call would change, against the text in the call or the file in the workspace. */
export function FileDiff({ change: { path, pieces }, isInWorkspace }: FileDiffProps) {
  const isWhole = pieces.every(({ before }) => before === null);
  const { data: present = null, isFetching } = useWorkspaceFile(isWhole && isInWorkspace ? path : null);
  return (
    <div className="flex flex-col gap-2" data-testid="file-change">
      <p>
        It would {isWhole && present === null ? "write" : "change"}{" "}
        <span className="font-mono wrap-anywhere">{path}</span>:
      </p>
      {!isFetching &&
        pieces.map(({ before, after }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: edits of one file have nothing else to be told apart by.
          <LineDiff key={index} before={before ?? present ?? ""} after={after} label={`What changes in ${path}`} />
        ))}
    </div>
  );
}
