/**
 * What must hold of the log streams of runs (P21), whatever connections break: a client is told each line once, those of an attempt
 * in their order and before its end; of an attempt with a result all that this counts, of one that a mark closes all that stands
 * before the mark.
 */
import type { StoredChunk } from '@penstock/bus';
import type { RunEvent } from '@penstock/run';
import type { SimBroker } from '../world/broker.ts';
import type { ToldMessage } from '../world/witness.ts';
import type { World } from '../world/world.ts';
import type { RunTruth } from './run-truth.ts';

interface Reader {
  /** Of each stage, what was told since the end of an attempt of it was. */
  readonly lines: Map<string, string[]>;
}

export class LogRules {
  readonly #world: World;
  readonly #broker: SimBroker;
  readonly #readers = new Map<string, Reader>();

  constructor({ world, broker }: { readonly world: World; readonly broker: SimBroker }) {
    this.#world = world;
    this.#broker = broker;
  }

  told(reader: string, run: RunTruth, { version, event }: ToldMessage): void {
    const known = this.#reader(reader);
    if (event.type === 'stage_log') {
      const lines = known.lines.get(event.stage);
      if (lines === undefined) known.lines.set(event.stage, [event.line]);
      else lines.push(event.line);
      return;
    }
    if (event.type !== 'stage_retrying' && event.type !== 'stage_completed') return;
    const truth = run.events[version - 1];
    if (truth === undefined || !('attempt' in truth) || truth.attempt === 0) return;
    if (truth.type !== 'stage_retrying' && truth.type !== 'stage_completed') return;
    const lines = known.lines.get(event.stage) ?? [];
    known.lines.delete(event.stage);
    const wanted = this.#logOf(run, truth);
    this.#world.mark(truth.logBytes === undefined ? 'log told to its mark' : 'log told to its end');
    if (lines.length > 0) this.#world.mark('log with lines told');
    this.#world.check(
      lines.join('\n') === wanted.join('\n'),
      'P21',
      () =>
        `${reader} was told ${JSON.stringify(lines)} of attempt ${truth.attempt} of ${event.stage} in run ${run.id}, its log is ${JSON.stringify(wanted)}`,
    );
  }

  /** By what is stored: its runner's chunks before its end, each byte once. */
  #logOf(run: RunTruth, end: Extract<RunEvent, { type: 'stage_retrying' | 'stage_completed' }>): readonly string[] {
    const started = run.events.find(
      (event) => event.type === 'stage_started' && event.stage === end.stage && event.attempt === end.attempt,
    );
    if (started?.type !== 'stage_started') return [];
    const isOf = ({ runner, chunk, sequence }: StoredChunk): boolean =>
      runner === started.runner &&
      chunk.stage === end.stage &&
      chunk.attempt === end.attempt &&
      chunk.mark !== true &&
      sequence <= (end.logSequence ?? Number.POSITIVE_INFINITY);
    const chunks = this.#broker.logs.chunksOf(run.id).filter(isOf);
    const pieces: string[] = [];
    let next = 0;
    for (const { chunk } of chunks.toSorted((a, b) => a.chunk.offset - b.chunk.offset)) {
      const { offset, output } = chunk;
      if (offset > next) pieces.push(`[${offset - next} bytes of this log are no longer available]\n`);
      next = Math.max(next, offset);
      if (offset + output.length <= next) continue;
      pieces.push(Buffer.from(output.subarray(next - offset)).toString());
      next = offset + output.length;
    }
    this.#world.check(
      end.logBytes === undefined || end.logBytes === next,
      'P21',
      `attempt ${end.attempt} of ${end.stage} in run ${run.id} has a log of ${end.logBytes} bytes, ${next} are stored`,
    );
    return pieces.join('').split('\n').slice(0, -1);
  }

  #reader(name: string): Reader {
    let reader = this.#readers.get(name);
    if (reader === undefined) this.#readers.set(name, (reader = { lines: new Map() }));
    return reader;
  }
}
