/**
 * Ten thousand small files saved as a cache and laid out again, by the processes that do so for a stage; beside it, in the same run and
 * on the same disk, `tar | zstd`, which keeps no bounds and looks at no path.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packCache, unpackCache } from '@penstock/artifacts';
import { temporaryFolder } from '../support/server.ts';

const FILES = 10_000;
const FILES_A_FOLDER = 100;
/** Of `node_modules`: most files are of a few kilobytes, and half of what stands in them compresses away. */
const FILE_BYTES_MAX = 8_192;
const ROUNDS = 5;
const SLOWER_MAX = 1.5;
const PATHS = ['modules'];

export async function benchCaches(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  try {
    const workspace = join(folder.path, 'workspace');
    await makeFiles(workspace);
    const archive = join(folder.path, 'archive');
    const tar = join(folder.path, 'archive.tar.zst');
    const [saved, restored, packed, unpacked]: number[][] = [[], [], [], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      saved?.push(await timed(() => save(workspace, archive)));
      packed?.push(await timed(() => shell(`tar -cf - -C "$1" modules | zstd -1 -q -f -o "$2"`, workspace, tar)));
      // Whoever comes second finds the disk warmer, so they take turns.
      const ours = async (): Promise<void> => {
        restored?.push(await intoNew(folder.path, (into) => restore(into, archive)));
      };
      const theirs = async (): Promise<void> => {
        unpacked?.push(
          await intoNew(folder.path, (into) => shell(`zstd -d -q -c "$2" | tar -xf - -C "$1"`, into, tar)),
        );
      };
      for (const one of round % 2 === 0 ? [ours, theirs] : [theirs, ours]) await one();
    }
    const [ours, theirs] = [median(restored), median(unpacked)];
    const times = ours / theirs;
    return [
      `saved: ${FILES} files in ${median(saved).toFixed(2)} s, tar | zstd in ${median(packed).toFixed(2)} s`,
      `restored: in ${ours.toFixed(2)} s, zstd | tar in ${theirs.toFixed(2)} s: ${times.toFixed(2)} times as long, ${SLOWER_MAX} at most`,
    ];
  } finally {
    folder.remove();
  }
}

async function makeFiles(workspace: string): Promise<void> {
  for (let file = 0; file < FILES; file += 1) {
    const parent = join(workspace, 'modules', `folder-${Math.floor(file / FILES_A_FOLDER)}`);
    if (file % FILES_A_FOLDER === 0) await mkdir(parent, { recursive: true });
    const bytes = randomBytes((file * 7) % (FILE_BYTES_MAX / 2));
    await writeFile(
      join(parent, `file-${file}.js`),
      Buffer.concat([bytes, Buffer.alloc(bytes.length, 'the same again ')]),
    );
  }
}

async function save(workspace: string, archive: string): Promise<void> {
  const file = await open(archive, 'w');
  try {
    await packCache({ workspace, paths: PATHS }, async (bytes) => void (await file.appendFile(bytes)));
  } finally {
    await file.close();
  }
}

async function restore(workspace: string, archive: string): Promise<void> {
  const file = await open(archive, 'r');
  try {
    const { files } = await unpackCache({ workspace, paths: PATHS }, file.fd, true);
    if (files !== FILES) throw new Error(`${files} files were restored, not ${FILES}`);
  } finally {
    await file.close();
  }
}

async function intoNew(root: string, work: (folder: string) => Promise<void>): Promise<number> {
  const into = join(root, 'into');
  await mkdir(into);
  const seconds = await timed(() => work(into));
  await rm(into, { recursive: true });
  return seconds;
}

async function shell(command: string, ...args: readonly string[]): Promise<void> {
  const child = spawn('sh', ['-e', '-c', command, 'sh', ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
}

function median(values: readonly number[] = []): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
