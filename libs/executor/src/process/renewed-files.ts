/**
 * Files of one stage that its owner replaces while it runs. They lie in memory that the stage sees, in a folder that the owner makes;
 * the owner keeps that folder open, and goes by it: whatever the stage puts into the way leads nobody anywhere else.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { UnstartableStage } from '../contract/errors.ts';
import type { StageSpec, StageUser } from '../contract/port.ts';

export class RenewedFiles {
  /** Variables of the stage: the paths of the files. */
  readonly env: Readonly<Record<string, string>>;
  /** Where the stage finds them. */
  readonly folder: string;
  readonly #contents: Map<string, string>;
  readonly #user: StageUser | undefined;
  #folder: { readonly path: string; readonly fd: number } | null = null;

  /** Undefined where it has none. `newFolder`: a path where nothing is yet. */
  static of({ renewedFiles = [], user }: StageSpec, newFolder: () => string): RenewedFiles | undefined {
    return renewedFiles.length === 0 ? undefined : new RenewedFiles(renewedFiles, newFolder(), user);
  }

  private constructor(files: NonNullable<StageSpec['renewedFiles']>, folder: string, user: StageSpec['user']) {
    this.folder = folder;
    this.env = Object.fromEntries(files.map(({ variable }) => [variable, join(folder, variable)]));
    this.#contents = new Map(files.map(({ variable, content }) => [variable, content]));
    this.#user = user;
  }

  /**
   * Before the stage begins. `path`: the folder as the owner reaches it; nothing is there yet. Throws UnstartableStage where there is
   * no room, else what the system says.
   */
  lay(path: string): void {
    try {
      // Entered by the stage, and written to by its owner alone.
      mkdirSync(path, { mode: 0o700 });
      this.#folder = { path, fd: openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW) };
      fchmodSync(this.#folder.fd, 0o711);
      for (const [variable, content] of this.#contents) this.#write(this.#folder, variable, content);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error;
      throw new UnstartableStage('there is no room in memory for its files', { cause: error });
    }
  }

  /** In its place at once and whole. Undefined, or why it is not. */
  replace(variable: string, content: string): string | undefined {
    if (!this.#contents.has(variable)) return undefined;
    this.#contents.set(variable, content);
    if (this.#folder === null) return undefined;
    try {
      this.#write(this.#folder, variable, content);
      return undefined;
    } catch (error) {
      return `the file of ${variable} was not replaced: ${(error as NodeJS.ErrnoException).code ?? String(error)}`;
    }
  }

  /** The stage has ended. What they lay in is gone, or is removed here. */
  close(): void {
    const folder = this.#folder;
    if (folder === null) return;
    this.#folder = null;
    this.#contents.clear();
    closeSync(folder.fd);
    try {
      rmSync(folder.path, { recursive: true, force: true });
    } catch {
      // It went with what it was in.
    }
  }

  #write({ path, fd }: { readonly path: string; readonly fd: number }, variable: string, content: string): void {
    // Elsewhere than on Linux a folder has no name but its own.
    const at = process.platform === 'linux' ? `/proc/self/fd/${fd}` : path;
    const incoming = join(at, `.incoming-${randomUUID()}`);
    try {
      const file = openSync(incoming, 'wx', 0o600);
      try {
        writeFileSync(file, content);
        if (this.#user !== undefined) fchownSync(file, this.#user.uid, this.#user.gid);
      } finally {
        closeSync(file);
      }
      renameSync(incoming, join(at, variable));
    } catch (error) {
      rmSync(incoming, { force: true });
      throw error;
    }
  }
}
