/**
 * A copy of the working tree in the system's temp folder, in which one file at a time is changed: what is committed and what
 * is not, but nothing that git ignores. Its packages are its own; only what was installed is linked.
 */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The scope of this repository's own packages: their links lead back into the copy. */
const OWN_SCOPE = '@penstock';
/** A list of some thousand names. */
const GIT_OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

export class WorkingCopy {
  readonly root: string;

  constructor(source: string) {
    this.root = mkdtempSync(join(tmpdir(), 'penstock-mutate-'));
    const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: source,
      encoding: 'utf8',
      maxBuffer: GIT_OUTPUT_BYTES_MAX,
    });
    for (const path of new Set(listed.split('\0'))) {
      if (path === '' || !existsSync(join(source, path))) continue;
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      cpSync(join(source, path), join(this.root, path), { verbatimSymlinks: true });
    }
    this.#linkInstalled(source);
  }

  /** Runs `work` while the file has another text. */
  async withText<T>(file: string, text: string, work: () => Promise<T>): Promise<T> {
    const path = join(this.root, file);
    const original = readFileSync(path, 'utf8');
    writeFileSync(path, text);
    try {
      return await work();
    } finally {
      writeFileSync(path, original);
    }
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  #linkInstalled(source: string): void {
    const installed = join(source, 'node_modules');
    const copied = join(this.root, 'node_modules');
    mkdirSync(join(copied, OWN_SCOPE), { recursive: true });
    for (const name of readdirSync(installed))
      if (name !== OWN_SCOPE && !name.startsWith('.vite')) symlinkSync(join(installed, name), join(copied, name));
    for (const name of readdirSync(join(installed, OWN_SCOPE)))
      symlinkSync(readlinkSync(join(installed, OWN_SCOPE, name)), join(copied, OWN_SCOPE, name));
  }
}
