/** `penstock migrate`: what is printed where, and that what comes of it does what the original did. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folder, penstock } from './command.ts';

const WORKFLOW = `name: count
on: [push]
jobs:
  count:
    runs-on: ubuntu-latest
    outputs: {sum: '\${{ steps.add.outputs.sum }}'}
    env: {FIRST: '20'}
    steps:
      - run: echo "SECOND=22 and more" >> $GITHUB_ENV
      - id: add
        run: |
          cd /
          echo "sum=$((FIRST + 22))" >> "$GITHUB_OUTPUT"
      - run: echo "in $(basename "$PWD") with $SECOND"
        working-directory: part
      - run: exit 3
        continue-on-error: true
      - if: github.ref == 'refs/heads/nowhere'
        run: echo never
      - if: steps.add.outputs.sum == '42' && env.FIRST == '20'
        run: echo "$SAID \${{ env.FIRST == '21' && 'one' || 'other' }}"
        env: {SAID: 'said "$HOME" \`id\`'}
  tell:
    needs: count
    if: needs.count.outputs.sum == '42'
    runs-on: ubuntu-latest
    strategy: {matrix: {word: [one, two]}}
    steps:
      - run: "echo '\${{ matrix.word }}' is \${{ needs.count.outputs.sum }}"
  tagged:
    if: startsWith(github.ref, 'refs/tags/')
    runs-on: ubuntu-latest
    steps: [{run: echo never}]
`;
const GITLAB = `stages: [build, test]
variables: {NAME: world, GREETING: "hello $NAME"}
.base: {before_script: [echo before]}
build:
  extends: .base
  stage: build
  script: ['echo "$GREETING" > out.txt']
  after_script: [echo "after it"]
  artifacts: {paths: [out.txt]}
test:
  stage: test
  script: [cat out.txt]
tagged: {stage: build, script: [echo never], rules: [{if: $CI_COMMIT_TAG}]}
`;
const WOODPECKER = `steps:
  - name: write
    image: bash
    environment: {WHO: world}
    commands: ['echo "hello $WHO" > out.txt']
  - {name: tagged, image: bash, commands: [echo never], when: {event: tag}}
  - {name: read, image: bash, commands: [cat out.txt]}
`;

/** The translated file, run on this machine: what each stage printed. */
async function ran(
  name: string,
  text: string,
): Promise<{ readonly lines: string[]; readonly code: number | null; readonly summary: string }> {
  const cwd = folder({ [name]: text });
  // Stages that lie beside each other get copies of the files that git knows.
  mkdirSync(join(cwd, 'part'));
  writeFileSync(join(cwd, 'part', 'file'), '');
  execFileSync('git', ['init', '--quiet'], { cwd });
  execFileSync('git', ['add', '--all'], { cwd });
  const written = await penstock(['migrate', name, '--output', '.pipeline.yaml'], { cwd });
  expect([written.code, written.stdout]).toEqual([0, '']);
  const { code, stdout, stderr } = await penstock(['run', '--yes'], { cwd });
  const lines = stdout.split('\n').flatMap((line) => /^\S.*? +\| (.*)$/.exec(line)?.[1] ?? []);
  return { lines, code, summary: `${stdout}${stderr}` };
}

describe('penstock migrate', () => {
  it('prints the pipeline file, and on standard error by its line what it does not say', async () => {
    const cwd = folder({ 'ci.yml': 'on: push\njobs:\n  a:\n    steps:\n      - uses: acme/x@v1\n' });
    const { code, stdout, stderr } = await penstock(['migrate', 'ci.yml'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toContain('pipeline:\n  name: ci\n');
    expect(stderr).toBe(
      'ci.yml:5: not translated: the action acme/x@v1 (write what it does as commands, or use an extension)\npenstock: 4 of 5 keys translated, 1 told above.\n',
    );
  });

  it('prints one object for programs', async () => {
    const cwd = folder({ '.gitlab-ci.yml': 'a: {script: [make]}\n' });
    const { stdout } = await penstock(['migrate', '--json', '.gitlab-ci.yml'], { cwd });
    expect(JSON.parse(stdout)).toMatchObject({ format: 'gitlab', keys: 2, translated: 2, notes: [] });
  });

  it('replaces no file that is there, and refuses what it cannot read', async () => {
    const cwd = folder({ '.gitlab-ci.yml': 'a: {script: [make]}\n', here: 'kept', 'bad.yml': 'a: [' });
    const there = await penstock(['migrate', '.gitlab-ci.yml', '--output', 'here'], { cwd });
    expect([there.code, there.stderr]).toEqual([2, expect.stringContaining('it is there already')]);
    expect(readFileSync(join(cwd, 'here'), 'utf8')).toBe('kept');
    const bad = await penstock(['migrate', 'bad.yml'], { cwd });
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('bad.yml cannot be translated: line 1')]);
    const wrong = await penstock(['migrate', '--from', 'jenkins', 'bad.yml'], { cwd });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--from takes github, gitlab, woodpecker')]);
  });

  it('makes of a workflow of GitHub what does the same', async () => {
    const { code, lines, summary } = await ran('ci.yml', WORKFLOW);
    expect(lines.toSorted(), summary).toEqual([
      'in part with 22 and more',
      'one is 42',
      'said "$HOME" `id` other',
      'two is 42',
    ]);
    expect(code).toBe(0);
    expect(summary).toMatch(/tagged +SKIPPED/);
  });

  it('makes of a file of GitLab what does the same', async () => {
    const { code, lines, summary } = await ran('.gitlab-ci.yml', GITLAB);
    expect(lines, summary).toEqual(['before', 'after it', 'kept 1 file (12 bytes)', 'hello world']);
    expect(code).toBe(0);
    expect(summary).toMatch(/tagged +SKIPPED/);
  });

  it('makes of a file of Woodpecker what does the same', async () => {
    const { code, lines, summary } = await ran('.woodpecker.yml', WOODPECKER);
    expect(lines, summary).toEqual(['hello world']);
    expect(code).toBe(0);
    expect(summary).toMatch(/tagged +SKIPPED/);
  });
});
