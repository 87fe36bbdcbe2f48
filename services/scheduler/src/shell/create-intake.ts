/**
 * Where requests to create runs wait until their texts have been read, in front of the partition that decides about them.
 *
 * CREATES-1. Those of one key are decided in the order in which they came; nobody else's wait for them.
 * CREATES-2. What needs no reading is decided at once.
 * CREATES-3. What is held here is bounded by key and in all, of which a key has a quarter of what is free; what is over the bound is refused,
 *  to be asked again. So texts of some keys, however long, leave room for another's.
 */
import { FairRoom } from '@penstock/async';
import type { CreateRequest } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import type { DefinitionSource } from '../run/definitions.ts';
import type { DefinitionReader } from './definition-reader.ts';

const WAITING_PER_KEY_MAX = 64;
/** UTF-16 units of texts. */
const LENGTH_PER_KEY_MAX = 8 * 1024 * 1024;
const ALL_LENGTHS = { shared: 64 * 1024 * 1024, own: 0 };

/** Decides about a request whose text's meaning stands in `source`, which throws where it could not be read. */
type Decide = (source: DefinitionSource) => void;

interface Line {
  waiting: number;
  length: number;
  last: Promise<void>;
  /** By run: a request that is sent again while it waits is not read again. */
  readonly readings: Map<string, Promise<DefinitionSource>>;
}

export class CreateIntake {
  readonly #reader: Pick<DefinitionReader, 'atOnce' | 'read'>;
  readonly #lines = new Map<string, Line>();
  readonly #room = new FairRoom(ALL_LENGTHS);

  constructor(reader: Pick<DefinitionReader, 'atOnce' | 'read'>) {
    this.#reader = reader;
  }

  /** `decide` is called once, and must not throw. */
  take(request: CreateRequest, decide: Decide): void {
    const known = this.#lines.get(request.key);
    const atOnce = known === undefined ? this.#atOnce(request) : undefined;
    if (atOnce !== undefined) decide(atOnce);
    else if (this.#takesRoom(request, known)) this.#wait(request, known ?? this.#newLine(request.key), decide);
    else decide(sourceOf(new Unavailable(`too many runs of '${request.key}' are being created`)));
  }

  #atOnce(request: CreateRequest): DefinitionSource | undefined {
    if (request.ended !== undefined) return NOTHING_TO_READ;
    try {
      const defined = this.#reader.atOnce(textOf(request));
      return defined === undefined ? undefined : { find: () => defined };
    } catch (error) {
      return sourceOf(error);
    }
  }

  /** True: its place is taken. */
  #takesRoom(request: CreateRequest, { waiting, length }: Pick<Line, 'waiting' | 'length'> = NOBODY): boolean {
    const more = lengthOf(request);
    return waiting < WAITING_PER_KEY_MAX && length + more <= LENGTH_PER_KEY_MAX && this.#room.take(request.key, more);
  }

  #newLine(key: string): Line {
    const line: Line = { waiting: 0, length: 0, last: Promise.resolve(), readings: new Map() };
    this.#lines.set(key, line);
    return line;
  }

  #wait(request: CreateRequest, line: Line, decide: Decide): void {
    const { key } = request;
    // A run that could not be created is sent once more as ended, and the first request may come late.
    const id = request.ended === undefined ? request.runId : `${request.runId} ended`;
    const length = lengthOf(request);
    line.waiting += 1;
    line.length += length;
    const reading = line.readings.get(id) ?? this.#read(request);
    line.readings.set(id, reading);
    line.last = Promise.all([reading, line.last]).then(([source]) => {
      line.waiting -= 1;
      line.length -= length;
      this.#room.giveBack(key, length);
      line.readings.delete(id);
      if (line.waiting === 0) this.#lines.delete(key);
      decide(source);
    });
  }

  async #read(request: CreateRequest): Promise<DefinitionSource> {
    if (request.ended !== undefined) return NOTHING_TO_READ;
    try {
      const defined = await this.#reader.read(textOf(request), request.key);
      return { find: () => defined };
    } catch (error) {
      return sourceOf(error);
    }
  }
}

const NOBODY = { waiting: 0, length: 0 };
const NOTHING_TO_READ = sourceOf(new Error('a run that has ended as it begins has no text'));

function sourceOf(error: unknown): DefinitionSource {
  return {
    find: () => {
      throw error;
    },
  };
}

/** No extensions are written in two ways. */
function textOf({ yaml, extensions }: CreateRequest): Pick<CreateRequest, 'yaml' | 'extensions'> {
  return { yaml, extensions: extensions?.length === 0 ? undefined : extensions };
}

function lengthOf({ yaml, extensions = [] }: CreateRequest): number {
  return extensions.reduce((sum, { manifest }) => sum + manifest.length, yaml.length);
}
