/**
 * One crash of everything, from a seed: a 20-stage run is under way, `serve` is killed with SIGKILL together with
 * whatever it started, in an order and at a moment that the seed chooses, and started again on the same data folder. Then
 * every promise of "never loses a run" is looked at: in the run, in the side-effect files of its stages, in the stream.
 */
import assert from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { descendantsOf, lives, processInfo, type ProcessInfo } from '../support/processes.ts';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { readStream, type StreamEvent } from '../support/sse.ts';
import { until } from '../support/wait.ts';

export interface CrashOptions {
  readonly seed: number;
  /** Whether the stages say `retry: {max: 2, on: [lost]}`. */
  readonly retry: boolean;
}

export interface CrashReport {
  readonly killedAfterMs: number;
  readonly finishedBefore: number;
  readonly status: string;
}

const STAGES = 20;
const STAGE_MS = 60;

export async function crashOnce({ seed, retry }: CrashOptions): Promise<CrashReport> {
  const random = seededRandom(seed);
  const folder = temporaryFolder('penstock-crash-');
  const dataDir = join(folder.path, 'data');
  let server = await startServer({ dataDir });
  try {
    const runId = await trigger(server, pipelineText(folder.path, retry));
    const before = watch(server, runId);
    const killedAfterMs = Math.floor(random() * STAGES * STAGE_MS * 0.6);
    await pause(killedAfterMs);
    const killed = await killEverything(server, random);
    const seen = await before.events;
    const startedBefore = countMarks(folder.path);

    server = await startServer({ dataDir });
    await until('everything that the last start left behind is gone', () => killed.every((info) => !lives(info)));
    const resumed = await readStream(logsUrl(server, runId), server.apiKey, { lastEventId: seen.at(-1)?.id });
    const replay = await readStream(logsUrl(server, runId), server.apiKey);
    const run = await runOf(server, runId);

    checkEventStream(seen, resumed.events, replay.events);
    checkEffects(folder.path, seen, startedBefore, replay.events);
    if (retry) assert.equal(run.status, 'SUCCESS', `with retries the run succeeds: ${JSON.stringify(run)}`);
    else checkInterrupted(run, seen);
    const finishedBefore = seen.filter(({ event }) => event === 'stage_completed').length;
    return { killedAfterMs, finishedBefore, status: run.status };
  } finally {
    await server.stop();
    folder.remove();
  }
}

/** A small generator with good spread; the same numbers for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Four chains of five, so that several stages run at a time. Each leaves a line at its start and at its end. */
function pipelineText(folder: string, retry: boolean): string {
  const lines = ['pipeline:', '  name: crash', 'stages:'];
  for (let index = 0; index < STAGES; index++) {
    const name = `s${index}`;
    lines.push(`  ${name}:`);
    if (index >= 4) lines.push(`    after: s${index - 4}`);
    if (retry) lines.push('    retry: { max: 2, on: [lost], delay: 1s }');
    lines.push('    run: |');
    lines.push(`      echo "start $PENSTOCK_ATTEMPT $(date +%s%N)" >> ${folder}/${name}`);
    lines.push(`      echo "hello from ${name}"; sleep ${STAGE_MS / 1000}; echo "bye from ${name}"`);
    lines.push(`      echo "end $PENSTOCK_ATTEMPT $(date +%s%N)" >> ${folder}/${name}`);
  }
  return lines.join('\n');
}

function watch(server: RunningServer, runId: string): { readonly events: Promise<StreamEvent[]> } {
  return { events: readStream(logsUrl(server, runId), server.apiKey).then(({ events }) => events) };
}

function logsUrl(server: RunningServer, runId: string): string {
  return `${server.url}/pipeline/${runId}/logs`;
}

/** Serve, broker, guard, helpers, stages: each gets SIGKILL, one after the other, in the seed's order. */
async function killEverything(server: RunningServer, random: () => number): Promise<ProcessInfo[]> {
  const own = processInfo(server.pid);
  const victims = [...descendantsOf(server.pid), ...(own === undefined ? [] : [own])];
  const order = victims.map((info) => ({ info, rank: random() })).sort((a, b) => a.rank - b.rank);
  // Every third crash takes serve alone, so that what guards the rest is seen to work.
  const alone = random() < 1 / 3;
  for (const { info } of alone ? order.filter(({ info }) => info.pid === server.pid) : order) {
    try {
      process.kill(info.pid, 'SIGKILL');
    } catch {
      // It died of another's end.
    }
  }
  await until('serve is gone', () => own === undefined || !lives(own));
  return victims;
}

interface RunAnswer {
  readonly status: string;
  readonly outcome: string | null;
  readonly stages: readonly { readonly name: string; readonly status: string; readonly reason: string | null }[];
}

async function runOf(server: RunningServer, runId: string): Promise<RunAnswer> {
  const answer = await server.graphql<{ run: RunAnswer }>(
    'query ($id: String!) { run(id: $id) { status outcome stages { name status reason } } }',
    { id: runId },
  );
  return answer.data.run;
}

/**
 * What was seen before the crash and after it is, without gap or repetition, what a new client is shown: the same events in
 * their order, the same lines in theirs, and the same event stream of each stage. How the lines of one stage and the events of
 * another stand to each other is not fixed.
 */
function checkEventStream(
  before: readonly StreamEvent[],
  after: readonly StreamEvent[],
  replay: readonly StreamEvent[],
): void {
  const whole = [...before, ...after];
  const isLine = ({ event }: StreamEvent): boolean => event === 'stage_log';
  const textsOf = (events: readonly StreamEvent[]): string[] =>
    events.map(({ event, data }) => `${event} ${JSON.stringify(data)}`);
  assert.deepEqual(
    textsOf(whole.filter((event) => !isLine(event))),
    textsOf(replay.filter((event) => !isLine(event))),
    'the events resume without gap or repetition',
  );
  assert.deepEqual(
    textsOf(whole.filter(isLine)),
    textsOf(replay.filter(isLine)),
    'the lines resume without gap or repetition',
  );
  for (let index = 0; index < STAGES; index++) {
    const ofStage = ({ data }: StreamEvent): boolean => data['stage'] === `s${index}`;
    assert.deepEqual(
      textsOf(whole.filter(ofStage)),
      textsOf(replay.filter(ofStage)),
      `the event stream of s${index} resumes without gap or repetition`,
    );
  }
  assert.equal(replay.at(-1)?.event, 'pipeline_completed', 'the event stream has its end');
}

/** No finished stage runs again; no two attempts of a stage overlap; what succeeded has left its end. */
function checkEffects(
  folder: string,
  before: readonly StreamEvent[],
  startedBefore: ReadonlyMap<string, number>,
  replay: readonly StreamEvent[],
): void {
  for (const { data } of before.filter(({ event }) => event === 'stage_completed')) {
    const stage = String(data['stage']);
    assert.equal(
      marksOf(folder, stage).length,
      startedBefore.get(stage),
      `${stage} was finished and did not run again`,
    );
  }
  for (const { data } of replay.filter(({ event }) => event === 'stage_completed')) {
    const stage = String(data['stage']);
    const marks = marksOf(folder, stage);
    if (data['status'] === 'Success')
      assert.ok(
        marks.some(({ kind }) => kind === 'end'),
        `${stage} succeeded, so it came to its end`,
      );
    const ends = new Map(marks.filter(({ kind }) => kind === 'end').map(({ attempt, at }) => [attempt, at]));
    for (const later of marks.filter(({ kind }) => kind === 'start')) {
      for (const [attempt, end] of ends)
        if (attempt < later.attempt)
          assert.ok(end <= later.at, `attempts ${attempt} and ${later.attempt} of ${stage} do not overlap`);
    }
  }
}

function checkInterrupted(run: RunAnswer, before: readonly StreamEvent[]): void {
  if (run.status === 'SUCCESS') {
    // The moment fell where no stage ran, or after the end.
    return;
  }
  assert.equal(run.status, 'FAILED');
  assert.equal(run.outcome, 'interrupted', 'a run whose runner was lost is interrupted');
  const finished = new Set(before.filter(({ event }) => event === 'stage_completed').map(({ data }) => data['stage']));
  for (const stage of run.stages) {
    if (finished.has(stage.name)) assert.equal(stage.status, 'SUCCESS', `${stage.name} keeps its success`);
    if (stage.status === 'FAILED') assert.equal(stage.reason, 'runner_lost');
  }
}

interface Mark {
  readonly kind: string;
  readonly attempt: number;
  readonly at: bigint;
}

function marksOf(folder: string, stage: string): Mark[] {
  const file = join(folder, stage);
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .filter((line) => line.split(' ').length === 3)
    .map((line) => {
      const [kind = '', attempt, at] = line.split(' ');
      return { kind, attempt: Number(attempt), at: BigInt(at ?? 0) };
    });
}

function countMarks(folder: string): Map<string, number> {
  return new Map(Array.from({ length: STAGES }, (_, index) => [`s${index}`, marksOf(folder, `s${index}`).length]));
}
