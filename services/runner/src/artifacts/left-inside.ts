/**
 * What stages leave where their files stay inside (a Pod): which of it is wanted here, and the folders that it is brought to, which
 * no stage can reach. It owns those from the stage's start until its files are kept.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isKeptAfter, pickCached, type CachedStage, type CacheToSave, type NotTaken } from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { removeTree, type StageExit, type StageLeavings } from '@penstock/executor';
import type { Log } from '@penstock/telemetry/log';
import { pickOnThread } from './left-picks.ts';
import type { WantedOfTree } from './pick-task.ts';

type CacheFolders = CachedStage['folders'];
type Folders = Readonly<Record<'workspace' | 'home', string>>;

export interface LeftPart extends StageLeavings {
  /** What is asked for and was not brought, by the lists of what was asked for, once it was looked for. */
  readonly notTaken: () => readonly NotTaken[];
}

/** What is brought out for what is to be saved. */
export interface LeftForCaches {
  /** Each with a list for each cache. */
  readonly parts: readonly LeftPart[];
  /** The copies of the stage's folders. */
  readonly folders: CacheFolders;
}

export interface LeftOfStage {
  /** For its artifacts, whose list is the first, and its reports. */
  readonly kept: LeftPart | undefined;
  readonly cached: LeftForCaches | undefined;
  /** In the order in which they are brought. */
  readonly all: readonly StageLeavings[];
}

export class LeftInside {
  readonly #folder: string;
  readonly #log: Log;

  /** `folder`: this object's alone. */
  constructor(folder: string, log: Log) {
    this.#folder = folder;
    this.#log = log;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) void this.#remove(join(folder, name));
  }

  /** Undefined: nothing is wanted. The folders are those of the stage; `caches`: what is to be saved once it has succeeded. */
  of(job: Job, folders: Folders, caches: readonly CacheToSave[] = []): LeftOfStage | undefined {
    const kept = this.#keptOf(job, folders);
    const cached = this.#cachedOf(caches, folders);
    const all = [...(kept === undefined ? [] : [kept]), ...(cached?.parts ?? [])];
    return all.length === 0 ? undefined : { kept, cached, all };
  }

  async clear({ all }: LeftOfStage): Promise<void> {
    await Promise.all(all.map(({ into }) => this.#remove(into)));
  }

  #keptOf({ artifacts, reports }: Job, { workspace }: Folders): LeftPart | undefined {
    const lists = [
      ...(artifacts === undefined ? [] : [artifacts.paths]),
      ...(reports === undefined ? [] : [reports.junit]),
    ];
    if (lists.length === 0) return undefined;
    const isWanted = (exit: StageExit): boolean =>
      isOwnEnd(exit) && (reports !== undefined || isKeptAfter(artifacts?.when ?? 'always', statusOf(exit)));
    return this.#partOf({ folder: workspace, isWanted }, { lists });
  }

  #cachedOf(caches: readonly CacheToSave[], folders: Folders): LeftForCaches | undefined {
    const partOf = (root: keyof Folders): LeftPart | undefined => {
      const picks = caches.flatMap(({ paths }) => pickCached(paths, root) ?? []);
      if (picks.length === 0) return undefined;
      const isAnywhere = picks.some(({ below }) => below === undefined);
      return this.#partOf(
        {
          folder: folders[root],
          below: isAnywhere ? undefined : picks.flatMap(({ below = [] }) => below),
          isWanted: (exit) => statusOf(exit).status === 'success',
        },
        { cached: caches.map(({ paths }) => paths), root },
      );
    };
    const [workspace, home] = [partOf('workspace'), partOf('home')];
    const parts = [workspace, home].filter((part) => part !== undefined);
    const [first] = parts;
    if (first === undefined) return undefined;
    // Where nothing is of the working folder nothing is looked for there.
    return { parts, folders: { workspace: (workspace ?? first).into, home: home?.into } };
  }

  #partOf(leavings: Omit<StageLeavings, 'into' | 'pick'>, wanted: WantedOfTree): LeftPart {
    let notTaken: readonly NotTaken[] = [];
    return {
      ...leavings,
      into: join(this.#folder, randomUUID()),
      // Again where bringing it has failed.
      pick: async (list, signal) => {
        const { notTaken: found, ...picked } = await pickOnThread({ list, wanted }, signal);
        notTaken = found;
        return picked;
      },
      notTaken: () => notTaken,
    };
  }

  async #remove(path: string): Promise<void> {
    await removeTree(path).catch((error: unknown) =>
      this.#log.warn({ err: error }, 'what was brought out of a Pod could not be removed'),
    );
  }
}

function isOwnEnd({ kind }: StageExit): boolean {
  return kind === 'exit' || kind === 'signal' || kind === 'timeout';
}

function statusOf(exit: StageExit): { readonly status: 'success' | 'failed' } {
  return { status: exit.kind === 'exit' && exit.code === 0 ? 'success' : 'failed' };
}
