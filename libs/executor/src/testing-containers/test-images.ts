/**
 * Images for tests, made here from a static busybox. Where there is no engine, or no such busybox, it says so in the summary.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findEngine, type FoundEngine } from '../container/find-engine.ts';
import { ownerFilter } from '../container/ownership.ts';

export const IMAGE = 'localhost/penstock-test:1';
export const IMAGE_WITHOUT_SHELL = 'localhost/penstock-test-bare:1';
/** Starts a server by itself: what the file `/www/index.html` holds, on port 8080. */
export const IMAGE_OF_SERVER = 'localhost/penstock-test-server:1';
/** A program that takes a script by `-c` and is not known as a shell. */
export const PROGRAM = { name: 'other', printsName: 'echo other' };

/** What an image was made of: an image of the same is there to stay, and is not made again. */
const MADE_OF = 'penstock.made-of';

const BUSYBOX = ['/bin/busybox', '/usr/bin/busybox'];

/** Null where they cannot be had: `what` has not run then. */
export async function engineForTests(what: string): Promise<FoundEngine | null> {
  const { engine, why } = await findEngine();
  const busybox = BUSYBOX.find((path) => existsSync(path) && isStatic(path));
  if (engine !== null && busybox !== undefined) {
    makeImages(engine, busybox);
    return engine;
  }
  const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
  const reason = engine === null ? why : 'there is no static busybox to make images of';
  if (notRunFile !== undefined) appendFileSync(notRunFile, `${what}: ${reason.replaceAll('\n', ' ')}\n`);
  return null;
}

/** What an owner has on the machine, in any state. */
export function containersOf(engine: FoundEngine | null, owner: string): string[] {
  if (engine === null) return [];
  const args = ['ps', '--all', '--quiet', '--filter', `label=${ownerFilter(owner)}`];
  return command(engine, args)
    .split('\n')
    .filter((line) => line !== '');
}

export function command(engine: FoundEngine, args: readonly string[]): string {
  const [file = '', ...flags] =
    engine.kind === 'podman' ? engine.command : ['docker', '--host', `unix://${engine.socketPath}`];
  return execFileSync(file, [...flags, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function isStatic(path: string): boolean {
  try {
    return !execFileSync('ldd', [path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).includes('=>');
  } catch {
    return true;
  }
}

function makeImages(engine: FoundEngine, busybox: string): void {
  const recipe = readFileSync(new URL(import.meta.url));
  const madeOf = createHash('sha256').update(recipe).update(readFileSync(busybox)).digest('hex');
  const names = [IMAGE, IMAGE_WITHOUT_SHELL, IMAGE_OF_SERVER];
  if (names.every((name) => labelOf(engine, name) === madeOf)) return;
  const label = `LABEL ${MADE_OF}=${madeOf}`;
  const root = mkdtempSync(join(tmpdir(), 'penstock-image-'));
  try {
    for (const folder of ['bin', 'etc', 'tmp', 'root', 'www', 'usr']) mkdirSync(join(root, folder));
    execFileSync('chmod', ['-R', '755', root]);
    copyFileSync(busybox, join(root, 'bin/busybox'));
    bringIn(engine, root, IMAGE_WITHOUT_SHELL, [label]);
    for (const applet of execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n'))
      if (applet !== 'busybox') symlinkSync('busybox', join(root, 'bin', applet));
    writeFileSync(join(root, 'bin', PROGRAM.name), '#!/bin/sh\nexec /bin/sh "$@"\n', { mode: 0o755 });
    writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
    writeFileSync(join(root, 'www/index.html'), 'served\n');
    execFileSync('chmod', ['1777', join(root, 'tmp')]);
    bringIn(engine, root, IMAGE, [label, 'ENV IN_IMAGE=yes']);
    bringIn(engine, root, IMAGE_OF_SERVER, [label, 'CMD ["httpd","-f","-v","-p","8080","-h","/www"]']);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function labelOf(engine: FoundEngine, image: string): string | undefined {
  try {
    return command(engine, ['image', 'inspect', '--format', `{{index .Config.Labels "${MADE_OF}"}}`, image]).trim();
  } catch {
    return undefined;
  }
}

function bringIn(engine: FoundEngine, root: string, name: string, changes: readonly string[]): void {
  const archive = `${root}.tar`;
  try {
    execFileSync('tar', ['--owner=0', '--group=0', '--numeric-owner', '-C', root, '-cf', archive, '.']);
    const options = changes.flatMap((change) => ['--change', change]);
    command(engine, ['import', ...options, archive, name]);
  } finally {
    rmSync(archive, { force: true });
  }
}
