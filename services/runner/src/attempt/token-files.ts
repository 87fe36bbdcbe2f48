/** Where a stage finds its id tokens: in a folder of its run, which no other run sees, or where its executor has its files inside. */
import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Job } from '@penstock/bus';
import type { StageProcess, StageSpec, StageUser } from '@penstock/executor';
import type { TokenPlace } from './stage-id-tokens.ts';

export class TokensInFolder implements TokenPlace {
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: string;
  readonly #user: StageUser | undefined;

  constructor({ idTokens = [] }: Pick<Job, 'idTokens'>, folder: string, user: StageUser | undefined) {
    this.#folder = folder;
    this.#user = user;
    this.env = Object.fromEntries(idTokens.map(({ variable }) => [variable, join(folder, `id-token-${randomUUID()}`)]));
  }

  /** The folder is the stage's to write: a file is made under a name that nobody can know, and takes the place of whatever is there. */
  async write(tokens: ReadonlyMap<string, string>): Promise<void> {
    for (const [variable, token] of tokens) {
      const incoming = join(this.#folder, `.id-token-${randomUUID()}`);
      const file = await open(incoming, 'wx', 0o600);
      try {
        await file.writeFile(token);
        if (this.#user !== undefined) await file.chown(this.#user.uid, this.#user.gid);
      } finally {
        await file.close();
      }
      await rename(incoming, this.env[variable] ?? '');
    }
  }

  async remove(): Promise<void> {
    await Promise.all(Object.values(this.env).map((path) => rm(path, { force: true, recursive: true })));
  }
}

export class TokensInside implements TokenPlace {
  /** The executor's to say. */
  readonly env = {};
  readonly #process: () => StageProcess | null;
  #tokens: ReadonlyMap<string, string> = new Map();

  /** `process`: null before the stage starts. */
  constructor(process: () => StageProcess | null) {
    this.#process = process;
  }

  /** What the stage starts with. */
  get files(): NonNullable<StageSpec['renewedFiles']> {
    return [...this.#tokens].map(([variable, content]) => ({ variable, content }));
  }

  write(tokens: ReadonlyMap<string, string>): Promise<void> {
    this.#tokens = tokens;
    for (const [variable, token] of tokens) this.#process()?.replaceFile?.(variable, token);
    return Promise.resolve();
  }

  /** They go with what they are in. */
  remove(): Promise<void> {
    return Promise.resolve();
  }
}
