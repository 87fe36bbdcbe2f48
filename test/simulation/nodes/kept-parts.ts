/**
 * What a stage of a world leaves and finds: the runner's real keeping of files and caches, over folders that are none. Files of two
 * stages are alike now and then.
 */
import {
  ArtifactsFailed,
  decodeManifest,
  restoreCaches,
  saveCaches,
  type CachedStage,
  type CacheTarget,
  type FoundCache,
} from '@penstock/artifacts';
import type { Bus, Job } from '@penstock/bus';
import { NotFound, ServiceError } from '@penstock/errors';
import {
  KeptArchives,
  StageArtifacts,
  StorageCalls,
  storageByBus,
  type Attempt,
  type LeftFiles,
  type StorageLine,
} from '@penstock/runner/testing';
import type { SavedCache } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';
import { refOf } from '../world/attempts.ts';
import { sumOf } from '../world/sim-objects.ts';
import type { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';

type AttemptParts = ConstructorParameters<typeof Attempt>[1];
type KeptParts = Pick<AttemptParts, 'artifacts' | 'caches'> & {
  readonly inherited: AttemptParts['sources']['inherited'];
};

const FILES_MAX = 3;
/** What files of different stages may be. */
const ALIKE = 2;
/** Those that an attempt of one stage may leave under one key. */
const ARCHIVES = 3;

/** Where nothing is kept. */
export const nothingKept: KeptParts = {
  inherited: { filling: (_job, fill) => fill, layOver: async () => {} },
  artifacts: { keep: async () => undefined },
  caches: { restore: async () => [], save: async () => [] },
};

export class SimKeeping {
  readonly #world: World;
  readonly #line: StorageLine;
  readonly #log: Log;

  constructor(world: World, bus: Bus, runner: string, time: SimTime, log: Log) {
    this.#world = world;
    this.#log = log;
    this.#line = mutatedLine(
      world,
      Object.assign(storageByBus(bus, runner), { time, random: () => world.random.next() }),
    );
  }

  of(job: Job): KeptParts {
    return {
      inherited: {
        filling: (_job, fill, signal) => this.#filling(job, fill, signal),
        layOver: async (_job, inherits, _workspace, { signal }) => {
          for (const each of inherits) await this.#inherit(job, each, signal);
          this.#world.mark('kept files laid out in a folder that was there');
        },
      },
      artifacts: new StageArtifacts({ storage: this.#line, collect: async () => drawFiles(this.#world, job) }),
      caches: {
        restore: (stage) => this.#restore(job, stage),
        save: (toSave, stage) => saveCaches(toSave, stage, (signal) => this.#target(job, signal)),
      },
    };
  }

  async #restore(job: Job, stage: Omit<CachedStage, 'replace'>): ReturnType<typeof restoreCaches> {
    let bytes = new Uint8Array();
    const kept = this.#archives(job, stage.signal, (given) => {
      bytes = given;
    });
    return await restoreCaches<FoundCache>(
      job.caches ?? [],
      { ...stage, replace: true },
      {
        find: (key, prefixes) => kept.find(key, prefixes),
        lend: async (found) => {
          const isWhole = await kept.lend(found, async () => {
            this.#world.mark('cache restored');
            this.#world.witness.cacheRestored(job.runId, found, bytes);
          });
          if (!isWhole) this.#world.mark('cache found damaged');
          return isWhole;
        },
        reasonOf: (error) => kept.reasonOf(error),
      },
    );
  }

  #target(job: Job, signal: AbortSignal): CacheTarget<SavedCache> {
    const kept = this.#archives(job, signal, () => {});
    return {
      put: async (key) => {
        const { random } = this.#world;
        const saved = await kept.put(key, async (take) => {
          await take(Buffer.from(`${job.runId} ${job.stage} ${random.int(ARCHIVES)}`));
          return true;
        });
        if (saved === null) this.#world.mark('cache being saved by another');
        return saved;
      },
      reasonOf: (error) => kept.reasonOf(error),
    };
  }

  #archives(job: Job, signal: AbortSignal, given: (bytes: Uint8Array<ArrayBuffer>) => void): KeptArchives {
    return new KeptArchives(
      {
        storage: this.#line,
        log: this.#log,
        withFile: async (work) => {
          const pieces: Uint8Array[] = [];
          return await work({
            descriptor: -1,
            append: async (bytes) => {
              pieces.push(Buffer.from(bytes));
              given(Buffer.concat(pieces));
            },
            read: async function* () {
              yield* pieces;
            },
          });
        },
      },
      job,
      signal,
    );
  }

  #filling(
    job: Job,
    fill: ((path: string) => Promise<void>) | undefined,
    signal: AbortSignal,
  ): ((path: string) => Promise<void>) | undefined {
    const { inherits = [] } = job;
    if (inherits.length === 0) return fill;
    return async () => {
      for (const each of inherits) await this.#inherit(job, each, signal);
    };
  }

  async #inherit(
    job: Job,
    { manifest, run }: NonNullable<Job['inherits']>[number],
    signal: AbortSignal,
  ): Promise<void> {
    const calls = new StorageCalls(this.#line, { ref: refOf(job), partition: job.partition }, signal);
    const read = async (sha256: string): Promise<Buffer> => {
      const bytes = Buffer.concat(await Array.fromAsync(calls.read(sha256, { run })));
      this.#world.check(sumOf(bytes) === sha256, 'P32', `run ${job.runId} is given other files than were kept`);
      return bytes;
    };
    try {
      for (const { sha256 } of decodeManifest(await read(manifest))) await read(sha256);
      this.#world.mark(run === undefined ? 'kept files handed on' : 'kept files of another run handed on');
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError)) throw error;
      if (error instanceof NotFound) this.#world.witness.keptMissing(run ?? job.runId, manifest, error.message);
      throw new ArtifactsFailed('artifacts', 'they cannot be had', { cause: error });
    }
  }
}

function drawFiles({ random }: World, job: Job): LeftFiles {
  const count = random.chance(0.05) ? 0 : 1 + random.int(FILES_MAX);
  const contents = Array.from({ length: count }, (_, index) =>
    Buffer.from(random.chance(0.5) ? `alike ${random.int(ALIKE)}` : `${job.stage}#${job.attempt} ${index}`),
  );
  const files = contents.map((content, index) => ({
    path: `f${index}`,
    sizeBytes: content.length,
    sha256: sumOf(content),
    executable: false,
  }));
  const read = async function* ({ path }: { readonly path: string }): AsyncGenerator<Uint8Array, void> {
    yield contents[Number(path.slice(1))] ?? Buffer.alloc(0);
  };
  return {
    listing: { files, leftOut: [], leftOutCount: 0, folders: [] },
    read,
    lend: read,
    close: async () => {},
  };
}

/** Where it is broken, what a list names is stored when it is stored, and the list does not wait for it. */
function mutatedLine({ mutation }: World, line: StorageLine): StorageLine {
  if (mutation !== 'lists-before-contents') return line;
  const hasty = async (verb: string, body: unknown): Promise<unknown> => {
    const answer = line(verb, body);
    if (verb !== 'put') return await answer;
    answer.catch(() => {});
    return null;
  };
  return Object.assign(hasty, { time: line.time, random: line.random });
}
