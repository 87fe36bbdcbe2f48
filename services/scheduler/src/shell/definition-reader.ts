/**
 * Reads the texts of runs where they hold up nobody: leases, grants and commits go on meanwhile. What it has read goes into
 * the definitions that all partitions share, and to whoever asked for it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { within } from '@penstock/async';
import { Unavailable } from '@penstock/errors';
import { isReadAtOnce, parsePipelineOffThread } from '@penstock/parse-pool';
import type { ParseResult, ResolvedExtension } from '@penstock/pipeline';
import type { Log } from '@penstock/telemetry/log';
import { readAddedText, type ReadAddedText } from './added-texts.ts';
import { readOptions, type DefinedPipeline, type Definitions } from '../run/definitions.ts';

/** The costliest files take half a second; the rest is waiting for those of others. Senders ask for 10 s. */
const CREATE_MS_MAX = 9_000;
/** After this nobody asks again. */
const READ_MS_MAX = 60_000;
/** Of a take-over (P6): the runs of a partition are read one after the other, and partitions take turns. */
const RESTORE_MS_MAX = 61_000;
/** Small texts are read on this thread for so long, then others have a turn. */
const TURN_MS = 10;

interface Text {
  readonly yaml: string;
  readonly extensions?: readonly ResolvedExtension[] | undefined;
}

type OffThread = typeof parsePipelineOffThread;

export class DefinitionReader {
  readonly #definitions: Definitions;
  readonly #log: Pick<Log, 'warn'>;
  readonly #offThread: OffThread;
  readonly #underWay = new Map<string, Promise<DefinedPipeline>>();
  readonly #addedUnderWay = new Map<string, Promise<ParseResult>>();
  #turnBeganAt = 0;
  #turns: Promise<void> = Promise.resolve();

  constructor(definitions: Definitions, log: Pick<Log, 'warn'>, offThread: OffThread = parsePipelineOffThread) {
    this.#definitions = definitions;
    this.#log = log;
    this.#offThread = offThread;
  }

  /** What needs no waiting: it is known, or small. Undefined: it is to be read. Throws BadPipeline. */
  atOnce({ yaml, extensions }: Text): DefinedPipeline | undefined {
    return this.#definitions.findAtOnce(yaml, extensions, () => isReadAtOnce(yaml, readOptions(extensions)));
  }

  /** Throws BadPipeline, and Unavailable where the text cannot be read in time. Keys take turns. */
  async read(text: Text, key: string, msMax = CREATE_MS_MAX): Promise<DefinedPipeline> {
    const atOnce = this.atOnce(text);
    if (atOnce !== undefined) return atOnce;
    const id = JSON.stringify([key, text.yaml, text.extensions]);
    // What was given up is read on, and whoever asks again finds it under way or known.
    const reading = this.#underWay.get(id) ?? this.#readOn(text, key).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, reading);
    return await within(msMax, reading, () => {
      throw new Unavailable('The pipeline file could not be read in time.');
    });
  }

  async #readOn({ yaml, extensions }: Text, key: string): Promise<DefinedPipeline> {
    const parsed = await this.#offThread(yaml, { ...readOptions(extensions), key }, READ_MS_MAX);
    return this.#definitions.keep(yaml, extensions, parsed);
  }

  /** What a stage adds to its run. The same text of the same stage is read once at a time, however often it is sent. */
  readonly readAdded: ReadAddedText = async (text, options, key) => {
    const id = JSON.stringify([key, options.added?.stage, text]);
    const reading =
      this.#addedUnderWay.get(id) ?? readAddedText(text, options, key).finally(() => this.#addedUnderWay.delete(id));
    this.#addedUnderWay.set(id, reading);
    return await reading;
  };

  /** Of a run that exists: it is read whatever that takes, here in the end. Throws BadPipeline. */
  async readAgain(text: Text, partition: number): Promise<DefinedPipeline> {
    await this.#giveWay();
    try {
      return await this.read(text, `partition ${partition}`, RESTORE_MS_MAX);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      this.#log.warn({ err: error, partition }, 'a text could not be read on another thread; it is read on this one');
      return this.#definitions.find(text.yaml, text.extensions);
    }
  }

  /** Partitions that open at the same time have their turns one after the other, with those of everybody else between. */
  async #giveWay(): Promise<void> {
    if (performance.now() - this.#turnBeganAt < TURN_MS) return;
    this.#turns = this.#turns.then(async () => {
      await nextTurn();
      this.#turnBeganAt = performance.now();
    });
    await this.#turns;
  }
}
