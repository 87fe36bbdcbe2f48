/**
 * Lays kept files out in a folder that nobody else can reach, which may hold a stranger's files already: a checkout with a link
 * where a path of a kept file leads through. There are only files in a list, and each is checked against its hash; so no list,
 * whoever made it, writes outside of the folder, makes a link or a device, or writes more than it says.
 */
import { createHash } from 'node:crypto';
import { lstat, mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ArtifactsFailed } from './errors.ts';
import { letGo } from './let-go.ts';
import { pathFault, type KeptFile } from './manifest.ts';

/** The content of a file, as it is stored. Its pieces are the caller's. */
export type ReadContent = (file: KeptFile) => AsyncIterable<Uint8Array>;

/** What is there already is replaced by a kept file of the same path. @throws ArtifactsFailed; what the reading throws */
export async function unpackFiles(folder: string, files: readonly KeptFile[], read: ReadContent): Promise<void> {
  const made = new Set<string>();
  for (const file of files) {
    const fault = pathFault(file.path);
    if (fault !== undefined) throw new ArtifactsFailed('artifacts', `a kept file cannot be laid out: ${fault}`);
    await makeParents(folder, file.path, made);
    const path = join(folder, file.path);
    const there = await lstat(path).catch(() => undefined);
    if (there?.isDirectory() === true)
      throw new ArtifactsFailed(
        'artifacts',
        `${JSON.stringify(file.path)} cannot be laid out: a folder is in its place`,
      );
    // A link in its place is removed, and not written through.
    if (there !== undefined) await unlink(path);
    await write(path, file, read);
  }
}

async function makeParents(folder: string, path: string, made: Set<string>): Promise<void> {
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const parent = path.slice(0, at);
    if (made.has(parent)) continue;
    const there = await lstat(join(folder, parent)).catch(() => undefined);
    if (there === undefined) await mkdir(join(folder, parent), { mode: 0o755 });
    else if (!there.isDirectory())
      throw new ArtifactsFailed(
        'artifacts',
        `${JSON.stringify(path)} cannot be laid out: ${JSON.stringify(parent)} is no folder`,
      );
    made.add(parent);
  }
}

async function write(path: string, kept: KeptFile, read: ReadContent): Promise<void> {
  const { sizeBytes, sha256, executable } = kept;
  const file = await open(path, 'wx', executable ? 0o755 : 0o644);
  try {
    const hash = createHash('sha256');
    let written = 0;
    for await (const bytes of read(kept)) {
      written += bytes.length;
      if (written > sizeBytes) break;
      hash.update(bytes);
      await file.appendFile(bytes);
      letGo(bytes);
    }
    if (written !== sizeBytes || hash.digest('hex') !== sha256)
      throw new ArtifactsFailed('artifacts', 'a kept file is damaged');
  } finally {
    await file.close();
  }
}
