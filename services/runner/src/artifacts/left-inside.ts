/**
 * What stages leave where their files stay inside (a Pod): which of it is wanted here, and the folders that it is brought to, which
 * no stage can reach. It owns those from the stage's start until its files are kept.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isKeptAfter, pickPaths, type ListedTree } from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { removeTree, type StageExit, type StageLeavings } from '@penstock/executor';
import type { Log } from '@penstock/telemetry/log';

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

  /** Undefined: nothing is wanted. `workspace`: where the stage has it. */
  of({ artifacts, reports }: Job, workspace: string): StageLeavings | undefined {
    const lists = [
      ...(artifacts === undefined ? [] : [artifacts.paths]),
      ...(reports === undefined ? [] : [reports.junit]),
    ];
    if (lists.length === 0) return undefined;
    return {
      folder: workspace,
      into: join(this.#folder, randomUUID()),
      isWanted: (exit) =>
        isOwnEnd(exit) && (reports !== undefined || isKeptAfter(artifacts?.when ?? 'always', statusOf(exit))),
      pick: (tree) => pickAll(lists, tree),
    };
  }

  async clear({ into }: StageLeavings): Promise<void> {
    await this.#remove(into);
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

function pickAll(lists: readonly (readonly string[])[], tree: ListedTree): ReturnType<StageLeavings['pick']> {
  const picks = lists.map((patterns) => pickPaths(patterns, tree));
  const all = (of: 'files' | 'links' | 'folders'): string[] => [...new Set(picks.flatMap((pick) => pick[of]))];
  return { files: all('files'), links: all('links'), folders: all('folders') };
}
