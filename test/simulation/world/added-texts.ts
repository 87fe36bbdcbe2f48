/** What stages of a world add to their runs: good texts, some that mean nothing, and now and then one that is refused. */
import { packText, type AttemptRef, type Job } from '@penstock/bus';
import type { Random } from '../../support/random.ts';

/** Names beside `x`, which the first of them has. */
const STAGES_MAX = 3;

/** Undefined: nothing is added. */
function drawText(random: Random, job: Pick<Job, 'generates'>): string | undefined {
  if (random.chance(0.15)) return undefined;
  if (random.chance(0.1)) return '{}';
  if (random.chance(0.1)) return 'x: {after: nobody, run: x}';
  const count = 1 + random.int(STAGES_MAX);
  const isDeepest = (job.generates?.added.depth ?? 0) >= 2;
  const lines: string[] = [];
  for (let index = 0; index < count; index++) {
    const keys = ['run: x'];
    const before = Array.from({ length: index }, (_, other) => `x${other}`).filter(() => random.chance(0.4));
    if (before.length > 0) keys.push(`after: [${before.join(', ')}]`);
    if (random.chance(0.3)) keys.push('retry: {max: 2, on: [failure, lost, timeout]}');
    if (random.chance(0.2)) keys.push('workspace: fresh');
    if (random.chance(0.2)) keys.push('matrix: {n: [1, 2]}');
    if (random.chance(0.2)) keys.push('allow_failure: true');
    if (!isDeepest && random.chance(0.3)) keys.push('generates: true');
    lines.push(`x${index}: {${keys.join(', ')}}`);
  }
  return lines.join('\n');
}

/** What each attempt has left. */
export class AddedTexts {
  readonly #texts = new Map<string, string>();

  /** As its result carries it. */
  draw(random: Random, job: Job): string | undefined {
    const text = drawText(random, job);
    if (text === undefined) return undefined;
    this.#texts.set(idOf(job), text);
    return packText(text);
  }

  of(attempt: Pick<AttemptRef, 'runId' | 'stage' | 'attempt'>): string | undefined {
    return this.#texts.get(idOf(attempt));
  }
}

function idOf({ runId, stage, attempt }: Pick<AttemptRef, 'runId' | 'stage' | 'attempt'>): string {
  return `${runId}/${stage}/${attempt}`;
}
