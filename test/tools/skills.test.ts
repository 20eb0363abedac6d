import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { frontMatter } from "../../src/tools/skills/front-matter.ts";
import { Skills, SkillsServer } from "../../src/tools/skills/skills.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { errorOf, textOf, toolsOf } from "./calls.ts";

const skill = (name: string, description: string) =>
  `---\nname: ${name}\ndescription: ${description}\n---\n# ${name}\nDo it.\n`;

async function opened(files: Record<string, string>, where = "workspace/skills") {
  const home = await scratchFolder();
  const folder = join(home.path, where);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const problems: string[] = [];
  const workspace = join(home.path, "workspace");
  const skills = new Skills({ folder, workspace, onProblem: (file, problem) => problems.push(`${file}: ${problem}`) });
  const registry = new ToolRegistry({ workspace, servers: [new SkillsServer(skills)], skills: skills.list });
  return { tools: toolsOf(registry), problems, folder, home: home.path };
}

describe("skills", () => {
  test("are listed by name and description, and read on demand with their other files", async () => {
    const { tools, problems } = await opened({
      "pdf/SKILL.md": skill("pdf-forms", '"Fills in: forms"'),
      "pdf/reference/fields.md": "All fields.",
      "mail/SKILL.md": skill("mail", "Writes mail."),
      "notes.md": "no skill",
    });
    assert.deepEqual(await tools.skills(), [
      { name: "mail", description: "Writes mail.", path: "/workspace/skills/mail" },
      { name: "pdf-forms", description: "Fills in: forms", path: "/workspace/skills/pdf" },
    ]);
    const text = await textOf(tools, "skills/read", { name: "pdf-forms" });
    assert.match(text, /# pdf-forms\nDo it\.\n\n\[Other files .*\]\n- reference\/fields\.md$/);
    assert.equal(await textOf(tools, "skills/read", { name: "pdf-forms", file: "reference/fields.md" }), "All fields.");
    assert.match(await errorOf(tools, "skills/read", { name: "none" }), /There are: mail, pdf-forms\./);
    assert.deepEqual(problems, []);
  });

  test("with bad front matter are reported once and left out", async () => {
    const { tools, problems } = await opened({
      "a/SKILL.md": "# No front matter",
      "b/SKILL.md": "---\nname: b\n---\n",
      "c/SKILL.md": skill("../c", "x"),
      "d/SKILL.md": skill("good", "x"),
      "e/SKILL.md": skill("good", "y"),
    });
    assert.deepEqual(
      (await tools.skills()).map(({ name }) => name),
      ["good"],
    );
    await tools.skills();
    assert.deepEqual(
      problems.map((problem) => problem.split(":")[0]),
      ["a/SKILL.md", "b/SKILL.md", "c/SKILL.md", "e/SKILL.md"],
    );
    assert.match(problems[0] ?? "", /does not begin with front matter/);
    assert.match(problems[1] ?? "", /description/);
  });

  test("are read from their own folder only", async () => {
    const { tools, home, folder } = await opened({ "a/SKILL.md": skill("a", "x") }, "elsewhere");
    await writeFile(join(home, "secret"), "secret");
    await symlink(join(home, "secret"), join(folder, "a/link"));
    assert.deepEqual(await tools.skills(), [{ name: "a", description: "x", path: join(home, "elsewhere/a") }]);
    for (const file of ["../../secret", "link"])
      assert.match(await errorOf(tools, "skills/read", { name: "a", file }), /outside/);
  });

  test("that do not exist have no tool", async () => {
    const { tools } = await opened({});
    assert.deepEqual(await tools.skills(), []);
    assert.deepEqual(await tools.list(), []);
  });
});

describe("front matter", () => {
  const CASES: [name: string, text: string, fields: Record<string, string> | null][] = [
    ["plain values", "---\na: one two\nb: x: y\n---\nrest", { a: "one two", b: "x: y" }],
    ["quoted values", "---\na: \"say \\\"hi\\\"\"\nb: 'it''s'\n---", { a: 'say "hi"', b: "it's" }],
    ["blocks", "---\na: >\n  one\n  two\nb: |\n  one\n  two\n---\n", { a: "one two", b: "one\ntwo" }],
    ["a value that goes on", "---\na: one\n  two\n---\n", { a: "one two" }],
    ["Windows line ends", "---\r\na: one\r\n---\r\nrest", { a: "one" }],
    ["lists and maps, which are passed over", "---\nlist:\n  - x\na: one\n# note\n---\n", { list: "- x", a: "one" }],
    ["none", "# Title", null],
    ["no end", "---\na: one\n", null],
  ];
  for (const [name, text, fields] of CASES) test(`with ${name}`, () => assert.deepEqual(frontMatter(text), fields));
});
