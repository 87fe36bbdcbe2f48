/** An empty repository, written without git: a process less, and nothing in it that a template or a setting put there. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Skeleton {
  readonly bare: boolean;
  /** Of the remote `origin`; from `checkCloneUrl`, so that it needs no escapes. */
  readonly url: string;
  /** Object ids of 64 digits. */
  readonly sha256: boolean;
  /** Objects may be missing that the remote has. */
  readonly partial: boolean;
}

export async function writeSkeleton(gitFolder: string, skeleton: Skeleton): Promise<void> {
  for (const part of ['objects/pack', 'objects/info', 'refs/heads', 'refs/tags'])
    await mkdir(join(gitFolder, part), { recursive: true, mode: 0o700 });
  await writeFile(join(gitFolder, 'config'), configOf(skeleton), { mode: 0o600 });
  // Last: without it git knows no repository here.
  await writeFile(join(gitFolder, 'HEAD'), 'ref: refs/heads/main\n', { mode: 0o600 });
}

export function configOf({ bare, url, sha256, partial }: Skeleton): string {
  const extensions = [...(sha256 ? ['objectFormat = sha256'] : []), ...(partial ? ['partialClone = origin'] : [])];
  return [
    '[core]',
    `\trepositoryformatversion = ${extensions.length === 0 ? 0 : 1}`,
    '\tfilemode = true',
    `\tbare = ${bare}`,
    ...(bare ? [] : ['\tlogallrefupdates = true']),
    ...(extensions.length === 0 ? [] : ['[extensions]', ...extensions.map((line) => `\t${line}`)]),
    '[remote "origin"]',
    `\turl = "${url}"`,
    '\tfetch = +refs/heads/*:refs/remotes/origin/*',
    ...(partial ? ['\tpromisor = true'] : []),
    '',
  ].join('\n');
}
