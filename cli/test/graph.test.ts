/** `penstock graph`: what a file would run, drawn. */
import { describe, expect, it } from 'vitest';
import { folder, penstock, pipeline } from './command.ts';

const FILE = pipeline(`
  build: {run: make}
  lint: {run: make lint, allow_failure: true}
  test:
    after: [build]
    matrix: {node: [24, 26]}
    image: node:24
    run: npm test
  look: {after: [test], approval: {}}
  deploy: {after: [look, lint], run: ./deploy, when: "failure()", runs_on: [gpu]}
`);

async function graph(args: readonly string[], files: Record<string, string> = FILE): Promise<string> {
  const { code, stdout, stderr } = await penstock(['graph', ...args], { cwd: folder(files) });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

describe('penstock graph', () => {
  it('draws each stage below the one that it comes after, with what is not plain about it', async () => {
    expect(await graph([])).toBe(
      [
        'Pipeline test',
        '',
        'build',
        '├─ test (node=24)  in node:24',
        '└─ test (node=26)  in node:24',
        '   └─ look         waits for approval; also after test',
        '      └─ deploy    also after failures, if its condition holds, on gpu; also after lint',
        'lint               may fail',
        '',
      ].join('\n'),
    );
  });

  it('prints the same for programs', async () => {
    const { pipeline: name, stages } = JSON.parse(await graph(['--json'])) as {
      pipeline: string;
      stages: { name: string; matrix?: string; after: string[]; remarks: string[] }[];
    };
    expect(name).toBe('test');
    expect(stages.map((stage) => stage.name)).toEqual([
      'build',
      'lint',
      'test (node=24)',
      'test (node=26)',
      'look',
      'deploy',
    ]);
    expect(stages[2]).toEqual({
      name: 'test (node=24)',
      matrix: 'test',
      after: ['build'],
      remarks: ['in node:24'],
    });
  });

  it('draws for Graphviz and for Mermaid, where names are labels and nothing else', async () => {
    const files = {
      '.pipeline.yaml': String.raw`pipeline: {name: 'a"; b \n ] <script>'}
stages:
  one: {run: "true"}
  two: {after: [one], run: "true", image: x:1}
`,
    };
    expect(await graph(['--dot'], files)).toBe(
      [
        String.raw`digraph "a\"; b \\n ] <script>" {`,
        '  rankdir=LR;',
        '  node [shape=box];',
        '  s0 [label="one"];',
        String.raw`  s1 [label="two\nin x:1"];`,
        '  s0 -> s1;',
        '}',
        '',
      ].join('\n'),
    );
    const matrix = pipeline(`
  test:
    matrix: {word: ['a"]<b>']}
    run: "true"
`);
    expect(await graph(['--mermaid'], matrix)).toBe('flowchart LR\n  s0["test (word=a#34;#93;#60;b#62;)"]\n');
  });

  it('of a matrix of 256 stages has each once', async () => {
    const values = Array.from({ length: 256 }, (_, index) => index).join(', ');
    const text = await graph(
      [],
      pipeline(`  a: {matrix: {n: [${values}]}, run: "true"}\n  end: {after: [a], run: "true"}`),
    );
    expect(text.split('\n').filter((line) => line.startsWith('a (n=')).length).toBe(256);
    expect(text).toMatch(/└─ end +also after a\n/);
  });

  it('shows the problems of a file that has some, and refuses two forms at once', async () => {
    const wrong = await penstock(['graph'], { cwd: folder(pipeline('  a: {rnu: x}')) });
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    expect(wrong.stderr).toContain("unknown key 'rnu'");
    const both = await penstock(['graph', '--dot', '--mermaid'], { cwd: folder(FILE) });
    expect([both.code, both.stdout]).toEqual([2, '']);
    expect(both.stderr).toContain('choose one of --dot and --mermaid');
  });
});
