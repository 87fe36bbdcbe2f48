/** Files that stages of a local run keep. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsOf, folder, linesOf, penstock, pipeline } from './command.ts';
import { answering, fakeServer, RUN_ID } from './fake-server.ts';

describe('penstock run keeps files', { timeout: 120_000 }, () => {
  it('they lie beside the file, by run and stage, and those of an earlier run are not kept again', async () => {
    const cwd = folder(
      pipeline(
        "  a/b: {run: 'mkdir -p dist; printf one > dist/f; printf x > dist/f.map; ln -s /etc/passwd dist/passwd; chmod +x dist/f', artifacts: ['**', '!**/*.map', '!*.yaml']}",
      ),
    );
    for (const run of [1, 2]) {
      const { code, stdout } = await penstock(['run', '--json'], { cwd });
      expect(code).toBe(0);
      expect(linesOf(eventsOf(stdout), 'a/b')).toEqual([
        '"dist/passwd" is not kept: it is a link that leaves the working folder',
        'kept 1 file (3 bytes)',
      ]);
      expect(readdirSync(join(cwd, '.penstock/artifacts'))).toHaveLength(run);
      if (run === 1) execFileSync('rm', ['-rf', join(cwd, 'dist')]);
    }
    const [run = ''] = readdirSync(join(cwd, '.penstock/artifacts'));
    const kept = join(cwd, '.penstock/artifacts', run, 'a%2Fb');
    expect(readdirSync(kept, { recursive: true }).toSorted()).toEqual(['dist', 'dist/f']);
    expect(readFileSync(join(kept, 'dist/f'), 'utf8')).toBe('one');
    expect(statSync(join(kept, 'dist/f')).mode & 0o100).toBe(0o100);
  });

  it('a stage fails where some are required and there are none, and leaves none of a stage that failed', async () => {
    const cwd = folder(
      pipeline(
        "  none: {run: 'true', artifacts: {paths: dist/**, required: true}}\n  failed: {run: 'printf x > f; exit 1', artifacts: f}",
      ),
    );
    const { code, stdout } = await penstock(['run', '--json'], { cwd });
    const completed = eventsOf(stdout).filter(({ type }) => type === 'stage_completed');
    expect(code).toBe(1);
    expect(completed.map(({ stage, reason }) => [stage, reason]).toSorted()).toEqual([
      ['failed', 'exit'],
      ['none', 'artifacts'],
    ]);
    expect(existsSync(join(cwd, '.penstock'))).toBe(false);
  });

  it('a stage with a folder of its own begins with them', async () => {
    const cwd = folder(
      pipeline(
        "  build: {run: 'mkdir -p dist; printf built > dist/f', artifacts: dist/**}\n  deploy: {run: 'cat dist/f', after: build, workspace: fresh}",
      ),
    );
    execFileSync('git', ['init', '-q'], { cwd });
    const { code, stdout } = await penstock(['run', '--json'], { cwd });
    expect([code, linesOf(eventsOf(stdout), 'deploy')]).toEqual([0, ['built']]);
  });

  it('those of a stage with a folder of its own are there, once, for the stages that share the folder of the run', async () => {
    const cwd = folder(
      pipeline(
        "  build: {run: 'printf built > f', artifacts: f, workspace: fresh}\n  change: {run: 'cat f; printf changed > f', after: build}\n  last: {run: 'cat f', after: [build, change]}",
      ),
    );
    execFileSync('git', ['init', '-q'], { cwd });
    const { code, stdout } = await penstock(['run', '--json'], { cwd });
    const events = eventsOf(stdout);
    expect([code, linesOf(events, 'change'), linesOf(events, 'last')]).toEqual([0, ['built'], ['changed']]);
  });
});

describe('a stage whose name has too many bytes for a folder', { timeout: 120_000 }, () => {
  it('keeps its files as any other, apart from one that differs at the end', async () => {
    const long = '統合試験'.repeat(12);
    const cwd = folder(
      pipeline(
        `  ${long}一: {run: 'printf 1 > out', artifacts: out, workspace: fresh}\n  ${long}二: {run: 'printf 2 > out', artifacts: out, workspace: fresh}\n  use: {run: cat out, after: ${long}一, workspace: fresh}`,
      ),
    );
    execFileSync('git', ['init', '-q'], { cwd });
    const { code, stdout } = await penstock(['run', '--json'], { cwd });
    expect([code, linesOf(eventsOf(stdout), 'use')]).toEqual([0, ['1']]);
    const [run = ''] = readdirSync(join(cwd, '.penstock/artifacts'));
    expect(readdirSync(join(cwd, '.penstock/artifacts', run)).length).toBe(2);
  });
});

describe('penstock run goes on, and only the stage fails,', { timeout: 120_000 }, () => {
  it('where kept files cannot be laid out for it', async () => {
    const cwd = folder(
      pipeline(
        "  build: {run: 'printf x > out', artifacts: out, workspace: fresh}\n  use: {run: 'true', after: build}\n  beside: {run: cat out, after: build, workspace: fresh}",
      ),
    );
    execFileSync('git', ['init', '-q'], { cwd });
    mkdirSync(join(cwd, 'out'));
    const { code, stdout, stderr } = await penstock(['run', '--json', '-j1'], { cwd });
    const events = eventsOf(stdout);
    const completed = events.filter(({ type }) => type === 'stage_completed');
    expect([code, stderr, events.at(-1)?.type]).toEqual([1, '', 'pipeline_completed']);
    expect(Object.fromEntries(completed.map(({ stage, status, reason }) => [stage, [status, reason]]))).toEqual({
      build: ['SUCCESS', undefined],
      use: ['FAILED', 'checkout'],
      beside: ['SUCCESS', undefined],
    });
    expect(linesOf(events, 'use')).toEqual([
      expect.stringMatching(/^the stage cannot start: the files of 'build' cannot be laid out: /),
    ]);
  });
});

it('penstock artifacts asks for one stage after the other where a run keeps more than an answer holds', async () => {
  const kept = { key: 'f', value: '/x', sizeBytes: '1', sha256: '00', expiresAt: '2026-01-01T00:00:00.000Z' };
  const run = { id: RUN_ID, status: 'SUCCESS', stages: [{ name: 'a' }, { name: 'b' }] };
  const tooMany = { message: 'more than one answer holds', extensions: { code: 'BAD_USER_INPUT' } };
  let isFull = true;
  const { url } = await fakeServer({
    graphql: ({ query, variables: { stage } }) => {
      if (!query.includes('artifacts(')) return { body: { data: { run } } };
      if (stage === undefined) return { body: { data: null, errors: [tooMany] } };
      if (isFull) {
        isFull = false;
        return { status: 429, body: { error: 'too_many_requests', message: 'later' } };
      }
      return { body: { data: { artifacts: [{ stage, ...kept }] } } };
    },
  });
  const list = async (...words: readonly string[]): Promise<unknown[]> => {
    const options = { cwd: folder(), env: { SERVICE_URL: url, SERVICE_API_KEY: 'key' } };
    const listed = JSON.parse((await penstock(['artifacts', ...words, '--json'], options)).stdout) as unknown[];
    return listed.map((each) => (each as { readonly stage: unknown }).stage);
  };
  expect([await list(RUN_ID), await list(RUN_ID, 'b')]).toEqual([['a', 'b'], ['b']]);
});

describe('penstock artifacts --download', () => {
  it('replaces nothing that is there already: a stage may be called as a folder of somebody’s work', async () => {
    const cwd = folder();
    mkdirSync(join(cwd, 'docs'));
    writeFileSync(join(cwd, 'docs/guide.md'), 'mine');
    const kept = { key: 'a', value: '/x', sizeBytes: '1', sha256: '00', expiresAt: '2026-01-01T00:00:00.000Z' };
    const { env } = await answering({
      run: { id: RUN_ID, status: 'SUCCESS', stages: [{ name: 'build' }, { name: 'docs' }] },
      artifacts: ['build', 'docs'].map((stage) => ({ stage, ...kept })),
    });
    const { code, stdout, stderr } = await penstock(['artifacts', RUN_ID, '--download', '.'], { cwd, env });
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('/docs is there already: remove it')]);
    expect(readFileSync(join(cwd, 'docs/guide.md'), 'utf8')).toBe('mine');
    expect(readdirSync(cwd)).toEqual(['docs']);
  });

  it('leaves nothing behind where one file does not arrive: the next try finds its place free', async () => {
    const cwd = folder();
    const file = (stage: string, content: string) => ({
      stage,
      key: 'out',
      value: `/files/${stage}`,
      sizeBytes: String(content.length),
      sha256: createHash('sha256').update(content).digest('hex'),
      expiresAt: '2026-01-01T00:00:00.000Z',
    });
    const files = { '/files/build': 'built', '/files/docs': 'cut' };
    const run = { id: RUN_ID, status: 'SUCCESS', stages: [{ name: 'build' }, { name: 'docs' }] };
    const artifacts = [file('build', 'built'), file('docs', 'written')];
    const { url } = await fakeServer({ files, graphql: () => ({ body: { data: { run, artifacts } } }) });
    const ask = () =>
      penstock(['artifacts', RUN_ID, '--download', 'out'], { cwd, env: { SERVICE_URL: url, SERVICE_API_KEY: 'key' } });
    const { code, stderr } = await ask();
    expect([code, stderr, readdirSync(join(cwd, 'out'))]).toEqual([3, expect.stringContaining('try again'), []]);
    files['/files/docs'] = 'written';
    expect([(await ask()).code, readdirSync(join(cwd, 'out'))]).toEqual([0, ['build', 'docs']]);
  });
});

describe('penstock run tells how tests went', { timeout: 120_000 }, () => {
  it('the log, the events and the table say it, also of a stage that failed; a file that cannot be read fails nothing', async () => {
    const files = {
      ...pipeline(
        "  unit: {run: 'exit 1', reports: {junit: 'good*.xml'}}\n  lint: {run: 'true', reports: {junit: ['*.xml', '!good-b.xml']}}\n  none: {run: 'true'}",
      ),
      'good-a.xml': '<testsuite name="s"><testcase name="one"/><testcase name="two"><failure/></testcase></testsuite>',
      'good-b.xml': '<testsuite name="s"><testcase name="three"><skipped/></testcase></testsuite>',
      'bad.xml': '<testsuite>',
    };
    const cwd = folder(files);
    const json = await penstock(['run', '--json'], { cwd });
    const completed = eventsOf(json.stdout).filter(({ type }) => type === 'stage_completed');
    const tests = Object.fromEntries(completed.map(({ stage, status, ...event }) => [stage, [status, event['tests']]]));
    expect(tests).toEqual({
      unit: ['FAILED', { total: 3, passed: 1, failed: 1, skipped: 1 }],
      lint: ['SUCCESS', { total: 2, passed: 1, failed: 1, skipped: 0 }],
      none: ['SUCCESS', undefined],
    });
    expect(linesOf(eventsOf(json.stdout), 'lint')).toEqual([
      expect.stringMatching(/^"bad.xml" is not in the test report: line 1: Unclosed/),
      'tests: 1 passed, 1 failed',
      'failed: s > two',
    ]);
    const { stdout } = await penstock(['run'], { cwd });
    expect(stdout).toContain(
      [
        'TESTS   PASSED  FAILED  SKIPPED',
        'unit         1       1        1',
        'lint         1       1        0',
        'in all       2       2        1',
      ].join('\n'),
    );
  });
});
