/**
 * The caches of one attempt: laid out in its folders before its stage starts, and saved once it has succeeded. Where its files stay
 * inside they are laid out in a folder beside, whose content is brought there over what it begins with, and saved from what is brought out.
 */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { notTakenTogether } from '@penstock/artifacts';
import type { Job, ResultRequest } from '@penstock/bus';
import type { StageSpec, StageUser } from '@penstock/executor';
import type { LeftForCaches } from '../artifacts/left-inside.ts';
import type { Prepared } from '../workspace/preparation.ts';
import type { StageCaches } from './stage-caches.ts';

export interface CachesOfAttempt {
  readonly caches: Pick<StageCaches, 'restore' | 'save'>;
  readonly job: Job;
  readonly user: StageUser | undefined;
  readonly signal: AbortSignal;
  /** For the log of the stage. */
  readonly remark: (text: string) => void;
}

/** With what is to be saved. @throws the signal's reason */
export async function restoreForAttempt(
  { caches, ...stage }: CachesOfAttempt,
  prepared: Prepared,
  filesStayInside: boolean,
): Promise<Prepared> {
  const { folders } = prepared;
  if (stage.job.caches === undefined) return prepared;
  if (!filesStayInside) return { ...prepared, caches: await caches.restore({ ...stage, folders }) };
  const cachedFolder = join(folders.home, `cached-${randomUUID()}`);
  const beside = { workspace: join(cachedFolder, 'workspace'), home: join(cachedFolder, 'home') };
  for (const path of [cachedFolder, beside.workspace, beside.home]) await mkdir(path, { mode: 0o700 });
  const restored = await caches.restore({ ...stage, folders: beside, hashedFolder: folders.workspace });
  return { ...prepared, cachedFolder, caches: restored };
}

/** What is brought into the folders of a stage over what it begins with. */
export function laidOverOf({ cachedFolder, folders }: Prepared): StageSpec['laidOver'] {
  if (cachedFolder === undefined) return undefined;
  return [
    { from: join(cachedFolder, 'workspace'), to: folders.workspace },
    { from: join(cachedFolder, 'home'), to: folders.home },
  ];
}

/** Whatever comes of it, the stage has succeeded. `left`: what was brought out of where its files stay. Undefined: nothing is left. */
export async function saveForAttempt(
  { caches, ...stage }: CachesOfAttempt,
  prepared: Prepared,
  left: LeftForCaches | undefined,
  faults: ReadonlyMap<string, string> = new Map(),
): Promise<ResultRequest['caches']> {
  const { caches: toSave = [], cachedFolder, folders } = prepared;
  if (toSave.length === 0) return undefined;
  if (cachedFolder === undefined) return await caches.save(toSave, { ...stage, folders });
  const fault = left?.parts.map(({ into }) => faults.get(into)).find((each) => each !== undefined);
  if (left === undefined || fault !== undefined) {
    for (const { key } of toSave)
      stage.remark(`the cache '${key}' is not saved: ${fault ?? 'there is nothing at its paths'}`);
    return undefined;
  }
  const notTakenOf = (at: number) => notTakenTogether(left.parts.flatMap(({ notTaken }) => notTaken()[at] ?? []));
  const brought = toSave.map((cache, at) => ({ ...cache, notTaken: notTakenOf(at) }));
  return await caches.save(brought, { ...stage, folders: left.folders });
}
