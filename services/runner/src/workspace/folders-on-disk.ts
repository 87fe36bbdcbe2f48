/** Where the folders of runs are on this machine's disk: `<root>/<partition>/<run>`. */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Spares, Workspaces } from '@penstock/executor';

/** Stages with a user of their own enter it by name, and list nothing. */
const ROOT_MODE = 0o711;

/** The folders of one partition's runs. */
export type RunWorkspaces = Pick<Workspaces, 'list' | 'prepare' | 'finish' | 'contentsOf' | 'remove'>;

export interface FolderDisk {
  /** Those that have had a folder before. */
  partitions(): readonly number[];
  of(partition: number): RunWorkspaces;
}

export class FoldersOnDisk implements FolderDisk {
  readonly #root: string;
  readonly #spares: Spares;
  readonly #partitions = new Map<number, Workspaces>();

  /** `sparesMax`: see `Spares`; of all partitions together. */
  constructor(root: string, sparesMax?: number) {
    this.#root = root;
    this.#spares = new Spares(sparesMax);
    mkdirSync(root, { recursive: true, mode: ROOT_MODE });
    chmodSync(root, ROOT_MODE);
  }

  partitions(): readonly number[] {
    return readdirSync(this.#root)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  }

  of(partition: number): Workspaces {
    let workspaces = this.#partitions.get(partition);
    if (workspaces === undefined) {
      workspaces = new Workspaces(join(this.#root, String(partition)), this.#spares);
      this.#partitions.set(partition, workspaces);
    }
    return workspaces;
  }

  /** The users whose folders are here. */
  owners(): Set<number> {
    const folders = [...this.#partitions.values()].flatMap((workspaces) =>
      workspaces.list().map((runId) => workspaces.folderOf(runId)),
    );
    return new Set(folders.map((folder) => lstatSync(folder, { throwIfNoEntry: false })?.uid ?? 0));
  }
}
