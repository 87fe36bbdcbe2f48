import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsOf, folder, linesOf, penstock, pipeline, outlineOf, type JsonEvent } from './command.ts';

async function events(
  stages: string,
  args: readonly string[] = [],
  files: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; all: JsonEvent[]; stderr: string }> {
  const { code, stdout, stderr } = await penstock(['run', '--json', ...args], {
    cwd: folder({ ...pipeline(stages), ...files }),
  });
  return { code, all: eventsOf(stdout), stderr };
}

const pick = (event: JsonEvent | undefined, ...fields: string[]): unknown[] => fields.map((field) => event?.[field]);
const completed = (all: readonly JsonEvent[], stage: string): JsonEvent | undefined =>
  all.find((event) => event.type === 'stage_completed' && event.stage === stage);

describe('penstock run', () => {
  it('shows each line behind its stage, then a table, and exits 0 on success', async () => {
    const { code, stdout, stderr } = await penstock(['run'], {
      cwd: folder(
        pipeline('  build: {run: "echo one; echo two >&2"}\n  longer-name: {run: printf three, after: build}'),
      ),
    });
    expect([code, stderr]).toEqual([0, '']);
    const text = stdout.replaceAll(/[\d.]+ s/g, 'N s');
    expect(text).toContain('build       | one\n');
    expect(text).toContain('build       | two\n');
    expect(text).toContain('longer-name | three\nlonger-name > SUCCESS in N s\n');
    expect(text).toMatch(
      /\nSTAGE +STATUS +TIME {2}REASON\nbuild +SUCCESS +N s\nlonger-name +SUCCESS +N s\n\nSUCCESS in N s: 2 passed\n$/,
    );
  });

  it('takes the values of inputs, and refuses what the file does not declare before anything runs', async () => {
    const file = [
      'pipeline: {name: release}',
      'inputs: {version: {required: true}, target: {options: [staging, production], default: staging}}',
      'stages: {a: {run: "echo got $INPUT_VERSION ${{ inputs.target }}; touch ran"}}',
    ].join('\n');
    const cwd = folder({ '.pipeline.yaml': file });
    for (const [args, message] of [
      [[], "the input 'version' is required"],
      [['--input', 'version=1', '--input', 'verzion=2'], "no input 'verzion'; did you mean 'version'?"],
      [['-i', 'version=1', '-i', 'target=prod'], "must be one of 'staging', 'production', not 'prod'"],
      [['-i', 'version'], "--input needs NAME=VALUE, not 'version'"],
      [['-i', 'version=1', '-i', 'version=2'], "--input 'version' is given twice"],
    ] as const) {
      const { code, stderr } = await penstock(['run', ...args], { cwd });
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
    expect(existsSync(join(cwd, 'ran'))).toBe(false);
    const { code, stdout } = await penstock(['run', '-i', 'version=$(id); a=b'], { cwd });
    expect([code, stdout]).toEqual([0, expect.stringContaining('got $(id); a=b staging\n')]);
  });

  it('exits 1 when a stage fails, and says which and how', async () => {
    const { code, stdout } = await penstock(['run'], {
      cwd: folder(pipeline('  bad: {run: exit 7}\n  next: {run: echo never, after: bad}\n  other: {run: "true"}')),
    });
    expect(code).toBe(1);
    expect(stdout).toMatch(/bad +> FAILED in [\d.]+ s: exit code 7\n/);
    expect(stdout).toMatch(
      /\nbad +FAILED +[\d.]+ s {2}exit code 7\nnext +SKIPPED +- {2}a stage it comes after did not succeed\nother +SUCCESS /,
    );
    expect(stdout).toMatch(/\nFAILED in [\d.]+ s: 1 passed, 1 failed, 1 skipped\n$/);
    expect(stdout).not.toContain('never');
  });

  it('tells the events of a server with their payloads, in their order', async () => {
    const { code, all } = await events(
      '  build: {run: "echo hello; echo oops >&2"}\n  test: {run: exit 3, after: build}\n  deploy: {run: "true", after: test}',
    );
    const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown;
    expect(code).toBe(1);
    expect(all).toEqual([
      { type: 'stage_started', stage: 'build', status: 'RUNNING', timestamp, attempt: 1 },
      {
        type: 'stage_log',
        stage: 'build',
        stream: expect.stringMatching(/^std(out|err)$/) as unknown,
        line: expect.any(String) as unknown,
        timestamp,
      },
      {
        type: 'stage_log',
        stage: 'build',
        stream: expect.stringMatching(/^std(out|err)$/) as unknown,
        line: expect.any(String) as unknown,
        timestamp,
      },
      {
        type: 'stage_completed',
        stage: 'build',
        status: 'SUCCESS',
        logs: expect.stringMatching(/^(hello\noops|oops\nhello)\n$/) as unknown,
        timestamp,
        attempt: 1,
        exitCode: 0,
      },
      { type: 'stage_started', stage: 'test', status: 'RUNNING', timestamp, attempt: 1 },
      {
        type: 'stage_completed',
        stage: 'test',
        status: 'FAILED',
        logs: '',
        timestamp,
        attempt: 1,
        reason: 'exit',
        exitCode: 3,
      },
      { type: 'stage_skipped', stage: 'deploy', status: 'SKIPPED', reason: 'dependency', timestamp },
      { type: 'pipeline_completed', status: 'FAILED', timestamp },
    ]);
    expect(linesOf(all).toSorted()).toEqual(['hello', 'oops']);
  });

  it('tries again as `retry` says, after its delay', async () => {
    const { code, all } = await events(
      '  flaky: {run: "echo $PENSTOCK_ATTEMPT; test $PENSTOCK_ATTEMPT = 3", retry: {max: 3, delay: 1s, backoff: constant}}',
    );
    expect(code).toBe(0);
    expect(outlineOf(all)).toEqual([
      'stage_started flaky',
      'stage_retrying flaky',
      'stage_started flaky',
      'stage_retrying flaky',
      'stage_started flaky',
      'stage_completed flaky',
      'pipeline_completed SUCCESS',
    ]);
    expect(linesOf(all)).toEqual(['1', '2', '3']);
    const [first, second] = all
      .filter((event) => event.type === 'stage_started' || event.type === 'stage_retrying')
      .slice(1, 3);
    expect(Date.parse(String(second?.['timestamp'])) - Date.parse(String(first?.['timestamp']))).toBeGreaterThanOrEqual(
      1000,
    );
    expect(pick(first, 'status', 'reason', 'exitCode', 'attempt')).toEqual(['FAILED', 'exit', 1, 1]);
  });

  it('expands a matrix and hands outputs on, as data', async () => {
    const { code, all } = await events(`
  build:
    run: |
      echo "version=1.2; touch hacked" >> "$SERVICE_OUTPUT"
      printf 'notes<<END\\nfirst\\nsecond\\nEND\\n' >> "$SERVICE_OUTPUT"
    outputs: [version, notes]
  test:
    after: build
    matrix: {node: [24, 26], os: [linux]}
    run: 'echo \${{ matrix.node }} on \${{ matrix.os }} with \${{ stages.build.outputs.version }}: \${{ stages.build.outputs.notes }}; ls'`);
    expect(code).toBe(0);
    expect(linesOf(all, 'test (node=24, os=linux)')).toEqual(['24 on linux with 1.2; touch hacked: first', 'second']);
    expect(linesOf(all, 'test (node=26, os=linux)')).toEqual(['26 on linux with 1.2; touch hacked: first', 'second']);
  });

  it('approves what waits for it with --yes; without a terminal to ask at it is rejected, and says why', async () => {
    const file = "  gate: {approval: {quorum: 2, message: 'Ship?'}}\n  ship: {run: echo shipped, after: gate}";
    const approved = await events(file, ['--yes']);
    expect(approved.code).toBe(0);
    expect(approved.all.filter(({ type }) => type === 'stage_approval').length).toBe(2);
    expect(pick(completed(approved.all, 'gate'), 'status', 'attempt')).toEqual(['SUCCESS', 0]);
    const { code, all } = await events(file);
    expect(code).toBe(1);
    expect(pick(completed(all, 'gate'), 'status', 'reason')).toEqual(['FAILED', 'rejected']);
    const said = all.find(({ type }) => type === 'stage_approval');
    expect(pick(said, 'by', 'decision', 'comment')).toEqual([
      'local',
      'rejected',
      'no terminal to ask at; --yes approves',
    ]);
  });

  it('runs the stages that a stage adds, in the same story as a server', async () => {
    const { code, all } = await events(`
  plan:
    generates: true
    run: |
      cat >"$SERVICE_STAGES" <<'END'
      deep:
        generates: true
        run: 'echo "a: {run: echo so deep}" >"$SERVICE_STAGES"'
      END
  last: {after: plan, run: echo last}`);
    expect(code).toBe(0);
    const told = all.filter(({ type }) => type !== 'run' && type !== 'stage_log');
    expect(told.map(({ type, stage }) => [type, ...(stage === undefined ? [] : [stage])].join(' '))).toEqual([
      ...['stage_started plan', 'stage_completed plan', 'stages_added plan'],
      ...['stage_started plan/deep', 'stage_completed plan/deep', 'stages_added plan/deep'],
      ...['stage_started plan/deep/a', 'stage_completed plan/deep/a', 'stage_started last', 'stage_completed last'],
      'pipeline_completed',
    ]);
    const refused = await events('  plan: {generates: true, run: "echo a > $SERVICE_STAGES"}');
    expect(refused.code).toBe(1);
    expect(completed(refused.all, 'plan')?.['reason']).toBe('pipeline_file');
  });

  it('drops an output that is not declared with a word about it, and fails a stage whose outputs make no sense', async () => {
    const { code, all } = await events(
      '  loose: {run: "echo x=1 >> $SERVICE_OUTPUT"}\n  broken: {run: "echo nonsense >> $SERVICE_OUTPUT", outputs: [y]}\n' +
        '  big: {run: "printf y=%065536d 0 > $SERVICE_OUTPUT", outputs: [y], retry: 2}',
    );
    expect(code).toBe(1);
    expect(completed(all, 'loose')?.['status']).toBe('SUCCESS');
    expect(linesOf(all, 'loose')).toEqual([expect.stringContaining("'x' is dropped")]);
    expect(completed(all, 'broken')?.['status']).toBe('FAILED');
    expect(all.find((event) => event.stage === 'broken' && event.type === 'stage_log')).toMatchObject({
      stream: 'system',
      line: expect.stringContaining('line 1') as unknown,
    });
    expect(completed(all, 'big')).toMatchObject({ status: 'FAILED', reason: 'quota', attempt: 1 });
    expect(linesOf(all, 'big')).toEqual([expect.stringContaining('65537 bytes; 65536 are kept')]);
  });

  it('follows `when`, `always()`, `failure()` and `allow_failure`', async () => {
    const { code, all } = await events(`
  soft: {run: exit 1, allow_failure: true}
  after-soft: {run: "true", after: soft}
  hard: {run: exit 1}
  skipped: {run: "true", after: hard}
  cleanup: {run: "true", after: hard, when: always()}
  alarm: {run: "true", after: hard, when: failure()}
  calm: {run: "true", after: after-soft, when: failure()}
  never: {run: "true", when: "'a' == 'b'"}`);
    expect(code).toBe(1);
    const ended = Object.fromEntries(
      all
        .filter((event) => event.type === 'stage_completed' || event.type === 'stage_skipped')
        .map((event) => [event.stage, event['status'] === 'SKIPPED' ? event['reason'] : event['status']]),
    );
    expect(ended).toEqual({
      soft: 'FAILED',
      'after-soft': 'SUCCESS',
      hard: 'FAILED',
      skipped: 'dependency',
      cleanup: 'SUCCESS',
      alarm: 'SUCCESS',
      calm: 'when',
      never: 'when',
    });
  });

  it('ends a stage at its timeout with reason `timeout`', async () => {
    const { code, all } = await events('  slow: {run: "echo begun; sleep 60", timeout: 1s}');
    expect(code).toBe(1);
    expect(pick(completed(all, 'slow'), 'status', 'reason')).toEqual(['FAILED', 'timeout']);
    expect(linesOf(all)).toEqual(['begun', 'the stage was stopped: it did not end within 1 s']);
  });

  it('ends the others of a matrix at the first failure (`fail_fast`), and reports them as cancelled', async () => {
    const { code, all } = await events(
      '  test: {matrix: {n: [1, 2, 3]}, run: "if [ ${{ matrix.n }} = 1 ]; then while ! test -e go; do sleep 0.02; done; exit 4; else touch go; sleep 60; fi"}',
      ['-j2'],
    );
    expect(code).toBe(1);
    expect(pick(completed(all, 'test (n=1)'), 'reason', 'exitCode')).toEqual(['exit', 4]);
    expect(completed(all, 'test (n=2)')?.['reason']).toBe('cancelled');
    expect(completed(all, 'test (n=3)')?.['reason']).toBe('cancelled');
  });

  it('shares the current folder, and its environment without what is a server’s', async () => {
    const cwd = folder(
      pipeline(`
  write: {run: "echo x > made; cd /; pwd"}
  read: {run: ["cat made", "echo $MINE-$SERVICE_API_KEY-$JWT_SECRET-$PENSTOCK_DEBUG-$CI-$PENSTOCK_STAGE", "pwd"], after: write, env: {MINE: "own $MINE"}}
  inside: {run: pwd, after: write, workdir: sub}`),
    );
    mkdirSync(join(cwd, 'sub'));
    const { code, stdout } = await penstock(['run', '--json'], {
      cwd,
      env: { MINE: 'users', SERVICE_API_KEY: 'k', JWT_SECRET: 's', PENSTOCK_DEBUG: '1' },
    });
    const all = eventsOf(stdout);
    expect(code).toBe(0);
    expect(linesOf(all, 'read')).toEqual(['x', 'own $MINE----true-read', cwd]);
    expect(linesOf(all, 'inside')).toEqual([join(cwd, 'sub')]);
    expect(existsSync(join(cwd, 'made'))).toBe(true);
  });

  it('does not start a stage whose workdir turns out to lead out of the folder', async () => {
    const { code, stdout } = await penstock(['run', '--json'], {
      cwd: folder(
        pipeline(`
  a: {run: 'echo "where=../.." >> "$SERVICE_OUTPUT"', outputs: [where]}
  b: {run: echo started, after: a, workdir: '\${{ stages.a.outputs.where }}'}`),
      ),
    });
    const all = eventsOf(stdout);
    expect(code).toBe(1);
    expect(completed(all, 'b')?.['reason']).toBe('checkout');
    expect(linesOf(all, 'b').join('\n')).toContain("its workdir '../..' is outside of the workspace");
  });

  it('gives `workspace: fresh` a copy of the files that git knows, and removes it', async () => {
    const cwd = folder({
      ...pipeline(
        '  spoil: {run: "echo spoilt > tracked; echo new > untracked"}\n  fresh: {workspace: fresh, after: spoil, run: ["find . -type f -o -type l | sort", "cat tracked sub/file", "./sub/file", "echo mine > tracked", "pwd", "chmod 0 sub"]}',
      ),
      tracked: 'as committed\n',
      gone: 'x',
    });
    mkdirSync(join(cwd, 'sub'));
    writeFileSync(join(cwd, 'sub/file'), '#!/bin/sh\necho runs\n');
    chmodSync(join(cwd, 'sub/file'), 0o755);
    symlinkSync('tracked', join(cwd, 'link'));
    for (const args of [
      ['init', '-q'],
      ['add', '-A'],
    ])
      execFileSync('git', args, { cwd });
    rmSync(join(cwd, 'gone'));
    const { code, stdout, stderr } = await penstock(['run', '--json'], { cwd });
    const lines = linesOf(eventsOf(stdout), 'fresh');
    expect([code, stderr]).toEqual([0, '']);
    expect(lines.slice(0, -1)).toEqual([
      './.pipeline.yaml',
      './link',
      './sub/file',
      './tracked',
      'spoilt',
      '#!/bin/sh',
      'echo runs',
      'runs',
    ]);
    expect(readFileSync(join(cwd, 'tracked'), 'utf8')).toBe('spoilt\n');
    expect(lines.at(-1)).toMatch(new RegExp(`^${tmpdir()}/penstock-run-`));
    expect(existsSync(dirname(lines.at(-1) ?? ''))).toBe(false);
  });

  it('fails a fresh stage outside of a repository with reason `checkout`, and nothing else', async () => {
    const { code, all } = await events('  fresh: {workspace: fresh, run: "true"}\n  other: {run: "true"}');
    expect(code).toBe(1);
    expect(completed(all, 'fresh')?.['reason']).toBe('checkout');
    expect(linesOf(all, 'fresh')).toEqual([expect.stringContaining('the files that git knows')]);
    expect(completed(all, 'other')?.['status']).toBe('SUCCESS');
  });

  it('runs no more than --jobs stages at a time', async () => {
    const stage = (name: string): string =>
      `  ${name}: {run: "echo + >> log; test $(grep -c + log) -le $(( $(grep -c - log) + 2 )) || echo over; sleep 0.05; echo - >> log"}`;
    const { code, all } = await events(['a', 'b', 'c', 'd', 'e', 'f'].map(stage).join('\n'), ['-j', '2'], { log: '' });
    expect(code).toBe(0);
    expect(linesOf(all)).toEqual([]);
  });

  it('counts a stage that cannot start among the failed, with a remark', async () => {
    const { code, all } = await events(
      '  a: {run: "true", shell: no-such-shell}\n  b: {run: "true", workdir: not/there}\n  c: {run: "true", after: a, when: always()}',
    );
    expect(code).toBe(1);
    expect(completed(all, 'a')?.['exitCode']).toBe(127);
    expect(completed(all, 'b')?.['exitCode']).toBe(126);
    expect(completed(all, 'c')?.['status']).toBe('SUCCESS');
  });

  it('with --quiet shows the end of failed stages only, and the table', async () => {
    const { code, stdout } = await penstock(['run', '-q'], {
      cwd: folder(pipeline('  good: {run: echo chatter}\n  bad: {run: "echo why; exit 1"}')),
    });
    expect(code).toBe(1);
    expect(stdout).not.toContain('chatter');
    expect(stdout).toMatch(/^bad {6}\| why\nbad {6}> FAILED in [\d.]+ s: exit code 1\n\nSTAGE/);
  });

  it('runs a thousand stages, and its table counts those that succeeded', async () => {
    const stages = Array.from(
      { length: 1000 },
      (_, index) => `  s${index}: {run: "${index === 500 ? 'exit 9' : 'true'}"}`,
    ).join('\n');
    const { code, stdout } = await penstock(['run', '-q'], { cwd: folder(pipeline(stages)) });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /\ns500 +FAILED +[\d.]+ s {2}exit code 9\nand 999 more\n\nFAILED in [\d.]+ s: 999 passed, 1 failed\n$/,
    );
  });
});
