/**
 * About how much memory the live runs of a partition take, in all and by key: what is admitted by number would otherwise be
 * anything between 3 KiB and some MiB a run. An estimate, kept by sums: what a run holds grows with its events.
 *
 *  HELD-1 The scheduler's sum is that of its partitions' runs: a run that leaves memory takes away what it has added.
 *  HELD-2 A definition counts once for all runs of a key that share it.
 *  HELD-3 What stages ask for counts, too, once for each definition: a file may ask for a hundred sets of labels that no runner has.
 */
import { definitionBytes, type PipelineDefinition } from '@penstock/pipeline';
import { planOf, type RunEvent } from '@penstock/run';
import type { LiveRun } from './live-run.ts';
import type { SchedulerLoad } from './scheduler-load.ts';
import { WideMap } from './wide-map.ts';

/** Measured with test/bench/memory.ts, rounded up: a run with its places in maps; a stage that waits, with its place in a queue. */
const RUN_BYTES = 4 * 1024;
const STAGE_BYTES = 24;
/** Of a stage to which more has happened than that it waits. */
const RECORD_BYTES = 256;
/** Of an event with its names, which it shares with the definition. */
const EVENT_BYTES = 320;
/** Of a stage that was added: what it does, its place in the plan and its name. */
const ADDED_STAGE_BYTES = 2 * 1024;
/** Of a set of labels and sizes: its class and lane, and their places among those that wait. Most files have one, which counts with a run. */
const CLASS_BYTES = 3_300;
/** Objects on the heap for a byte of JSON; the plan of a definition included. */
const DEFINITION_FACTOR = 2;

interface Held {
  readonly key: string;
  bytes: number;
  /** Events that are counted. */
  events: number;
}

interface SharedDefinition {
  readonly bytes: number;
  runs: number;
}

export class HeldBytes {
  readonly #load: Pick<SchedulerLoad, 'liveBytes'>;
  readonly #runs = new WideMap<LiveRun, Held>(({ id }) => id);
  readonly #keys = new Map<string, number>();
  readonly #definitions = new Map<string, Map<PipelineDefinition, SharedDefinition>>();
  /** Of all of them. */
  #bytes = 0;

  constructor(load: Pick<SchedulerLoad, 'liveBytes'>) {
    this.#load = load;
  }

  ofKey(key: string): number {
    return this.#keys.get(key) ?? 0;
  }

  /** Without its definition, which it may share. */
  ofRun(run: LiveRun): number {
    return this.#runs.get(run)?.bytes ?? 0;
  }

  add(run: LiveRun): void {
    const held: Held = { key: run.state.key, bytes: 0, events: 0 };
    this.#runs.set(run, held);
    this.#count(held, RUN_BYTES + run.state.stages.length * STAGE_BYTES);
    this.#share(held.key, run.definition, run.state.yaml.length);
    this.changed(run);
  }

  /** The run has more events than before, or after a fault fewer. */
  changed(run: LiveRun): void {
    const held = this.#runs.get(run);
    if (held === undefined) return;
    for (let index = held.events; index < run.events.length; index++)
      this.#count(held, eventBytes(run.events[index] as RunEvent));
    held.events = run.events.length;
  }

  delete(run: LiveRun): void {
    const held = this.#runs.get(run);
    if (held === undefined) return;
    this.#runs.delete(run);
    this.#count(held, -held.bytes);
    this.#unshare(held.key, run.definition);
    if (this.#keys.get(held.key) === 0) this.#keys.delete(held.key);
  }

  clear(): void {
    this.#load.liveBytes -= this.#bytes;
    this.#bytes = 0;
    this.#runs.clear();
    this.#keys.clear();
    this.#definitions.clear();
  }

  #count(held: Held, bytes: number): void {
    held.bytes += bytes;
    this.#countKey(held.key, bytes);
  }

  #countKey(key: string, bytes: number): void {
    this.#load.liveBytes += bytes;
    this.#bytes += bytes;
    this.#keys.set(key, this.ofKey(key) + bytes);
  }

  #share(key: string, definition: PipelineDefinition, textLength: number): void {
    const ofKey = this.#definitions.get(key) ?? new Map<PipelineDefinition, SharedDefinition>();
    this.#definitions.set(key, ofKey);
    const known = ofKey.get(definition);
    if (known !== undefined) {
      known.runs += 1;
      return;
    }
    const sets = new Set(planOf(definition).stages.map(({ wanted }) => wanted)).size;
    const bytes =
      DEFINITION_FACTOR * definitionBytes(definition) + 2 * textLength + CLASS_BYTES * Math.max(0, sets - 1);
    ofKey.set(definition, { bytes, runs: 1 });
    this.#countKey(key, bytes);
  }

  #unshare(key: string, definition: PipelineDefinition): void {
    const ofKey = this.#definitions.get(key);
    const known = ofKey?.get(definition);
    if (ofKey === undefined || known === undefined) return;
    known.runs -= 1;
    if (known.runs > 0) return;
    ofKey.delete(definition);
    if (ofKey.size === 0) this.#definitions.delete(key);
    this.#countKey(key, -known.bytes);
  }
}

/** The same of a run that is read back, before anything is known of its definition but its stages and its text. */
export function bytesOfHistory(
  events: readonly RunEvent[],
  { stages, yaml }: { readonly stages: { readonly length: number }; readonly yaml: string },
): number {
  const own = RUN_BYTES + stages.length * STAGE_BYTES + 2 * yaml.length;
  return events.reduce((sum, event) => sum + eventBytes(event), own);
}

function eventBytes(event: RunEvent): number {
  let bytes = EVENT_BYTES;
  if ('stages' in event) bytes += event.stages.length * (event.type === 'stages_skipped' ? 8 + RECORD_BYTES : 8);
  if (event.type === 'stages_added') bytes += 2 * event.text.length + ADDED_STAGE_BYTES * event.stages.length;
  if (event.type === 'stage_started') bytes += RECORD_BYTES;
  if (event.type === 'run_cancelled') bytes += event.cancelledStages * RECORD_BYTES;
  if (event.type === 'stages_adopted')
    for (const { outputs } of event.adopted) bytes += RECORD_BYTES + outputsBytes(outputs);
  if ('outputs' in event) bytes += outputsBytes(event.outputs);
  return bytes;
}

function outputsBytes(outputs: Readonly<Record<string, string>> = {}): number {
  return Object.entries(outputs).reduce((sum, [key, value]) => sum + 2 * (key.length + value.length), 0);
}
