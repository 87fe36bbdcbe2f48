import { parsePipeline } from '@penstock/pipeline';
import { newRun, newRunId, planOf } from '@penstock/run';
import { RunActor } from '@penstock/run/machine';
import { describe, expect, it } from 'vitest';
import type { StageSpec } from '@penstock/executor';
import { likelyNext, StagesAhead } from '../src/local/stages-ahead.ts';
import { eventsOf, folder, outlineOf, penstock, pipeline, start } from './command.ts';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

describe('what is likely to come next', () => {
  function actorOf(stages: string): RunActor {
    const parsed = parsePipeline(`pipeline: {name: test}\nstages:\n${stages}`);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
    const { definition } = parsed;
    const id = newRunId({ now: 1, key: 'local', random: new Uint8Array(10) });
    const created = {
      type: 'run_created',
      at: 1,
      tenant: 't',
      key: 't',
      pipelineName: 'test',
      yaml: '',
      priority: 0,
    } as const;
    const actor = new RunActor({
      run: newRun(id, { ...created, origin: { kind: 'local' } }, planOf(definition)),
      settings: { queueTimeoutMs: Infinity },
    });
    actor.tell({ type: 'start', at: 2 });
    return actor;
  }

  it('is what is ready, then what waits for nothing but what runs, each once', () => {
    const actor = actorOf(
      '  a: {run: x}\n  b: {run: x}\n  c: {run: x}\n  d: {run: x, after: [a, b]}\n  e: {run: x, after: [a, c]}\n  f: {run: x, after: d}\n',
    );
    expect(likelyNext(['c'], ['a', 'b'], actor, 9)).toEqual(['c', 'd']);
    expect(likelyNext(['c'], ['a', 'b'], actor, 1)).toEqual(['c']);
    expect(likelyNext([], ['a'], actor, 9)).toEqual([]);
  });

  it('is no stage whose start depends on more than the file', () => {
    const asks = [
      'env: {X: "${{ stages.a.outputs.x }}"}',
      'run: "echo ${{ stages.a.outputs.x }}"',
      'workdir: "${{ stages.a.outputs.x }}"',
      'secrets: [TOKEN]',
      'outputs: [y]',
      'artifacts: [y]',
      'cache: {key: k, paths: [y]}',
      'workspace: fresh',
      'image: alpine',
    ];
    const stages = asks.map((ask, at) => `  s${at}: {${ask.startsWith('run') ? '' : 'run: x, '}${ask}, after: a}\n`);
    const actor = actorOf(
      `  a: {run: x, outputs: [x]}\n${stages.join('')}  plain: {run: x, env: {X: y}, workdir: z, after: a}\n`,
    );
    expect(likelyNext([], ['a'], actor, 99)).toEqual(['plain']);
  });
});

describe('stages that are prepared ahead', () => {
  function aheadOf(slots: number): { ahead: StagesAhead; told: string[] } {
    const told: string[] = [];
    const ahead = new StagesAhead({
      slots,
      plan: (stage) => {
        if (stage === 'broken') throw new Error('it cannot be started');
        return { spec: { cwd: stage } as StageSpec, outputFile: stage };
      },
      prepare: ({ cwd }) => {
        told.push(`prepare ${cwd}`);
        return {
          begin: () => told.push(`begin ${cwd}`) > 0,
          start: () => {
            throw new Error('nobody starts it here');
          },
          discard: () => void told.push(`discard ${cwd}`),
        };
      },
    });
    return { ahead, told };
  }

  it('are as many as there are slots, and begin where two have no stage, or the only one (AHEAD-2)', () => {
    const { ahead, told } = aheadOf(3);
    ahead.plan(['broken', 'a', 'b', 'c', 'd']);
    for (const busy of [3, 2]) ahead.begin(busy);
    expect(told).toEqual(['prepare a', 'prepare b', 'prepare c']);
    ahead.begin(1);
    ahead.begin(1);
    expect(told.slice(3)).toEqual(['begin a', 'begin b']);
    ahead.begin(0);
    expect(told.slice(5)).toEqual(['begin c']);
    const alone = aheadOf(1);
    alone.ahead.plan(['a']);
    alone.ahead.begin(0);
    expect(alone.told).toEqual(['prepare a', 'begin a']);
  });

  it('are given up when something else is likelier, at a second attempt, for a stage that needs the room, and in the end', () => {
    const { ahead, told } = aheadOf(3);
    ahead.plan(['a', 'b', 'c']);
    ahead.plan(['b', 'c', 'd']);
    expect(told.splice(0)).toEqual(['prepare a', 'prepare b', 'prepare c', 'discard a', 'prepare d']);
    expect(ahead.take('b', 2)).toBeUndefined();
    expect(told.splice(0)).toEqual(['discard b']);
    ahead.begin(1);
    expect(told.splice(0)).toEqual(['begin c', 'begin d']);
    ahead.makeRoom(2);
    expect(told.splice(0)).toEqual(['discard d']);
    ahead.close();
    expect(told).toEqual(['discard c']);
  });
});

describe('penstock run of a chain', () => {
  it.each(['1', '2'])('tells its events in order, with -j%s', async (jobs) => {
    const cwd = folder(
      pipeline(
        '  a: {run: echo a}\n  b: {run: echo b, after: a}\n  c: {run: echo c, after: b}\n  d: {run: echo d, after: b}',
      ),
    );
    const { code, stdout } = await penstock(['run', '--json', `-j${jobs}`], { cwd });
    expect(code).toBe(0);
    const told = eventsOf(stdout).flatMap(({ type, stage, line }) => (stage === 'd' ? [] : [String(line ?? type)]));
    expect(told).toEqual([
      ...['stage_started', 'a', 'stage_completed', 'stage_started', 'b', 'stage_completed'],
      ...['stage_started', 'c', 'stage_completed', 'pipeline_completed'],
    ]);
  });

  it('runs nothing of what came after a stage that failed', async () => {
    const cwd = folder(
      pipeline(
        '  a: {run: exit 3}\n  b: {run: touch ran, after: a}\n  c: {run: touch tidied, after: a, when: always()}',
      ),
    );
    const { code, stdout } = await penstock(['run', '--json', '-j1'], { cwd });
    expect(code).toBe(1);
    expect(outlineOf(eventsOf(stdout)).filter((line) => line.endsWith(' b'))).toEqual(['stage_skipped b']);
    expect([existsSync(join(cwd, 'ran')), existsSync(join(cwd, 'tidied'))]).toEqual([false, true]);
  });

  it.each(['1', '2'])('tries a stage again while the next one is prepared, with -j%s', async (jobs) => {
    const cwd = folder(
      pipeline(
        '  a: {run: "test -e tried || { touch tried; exit 1; }", retry: {max: 1, delay: 0s}}\n  b: {run: touch ran, after: a}',
      ),
    );
    const { code } = await penstock(['run', `-j${jobs}`], { cwd });
    expect([code, existsSync(join(cwd, 'ran'))]).toEqual([0, true]);
  });

  it('is cancelled by ^C while a stage is prepared, which then never runs', async () => {
    const cwd = folder(pipeline('  a: {run: exit 1, retry: {max: 1, delay: 1h}}\n  b: {run: touch ran, after: a}'));
    const command = start(['run', '--json'], { cwd });
    await command.until('stdout', 'stage_retrying');
    command.child.kill('SIGINT');
    const { code, stdout } = await command.ended;
    expect(code).toBe(130);
    expect(outlineOf(eventsOf(stdout)).at(-1)).toBe('pipeline_cancelled CANCELLED');
    expect(existsSync(join(cwd, 'ran'))).toBe(false);
  });
});
