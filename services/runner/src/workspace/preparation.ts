/** What a stage finds when it starts: its folders, its repository at the run's commit, the package of its extension. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { CacheToSave } from '@penstock/artifacts';
import type { CloneSecret, Job } from '@penstock/bus';
import { removeTree, type StageFolders, type StageUser, type Workspaces } from '@penstock/executor';
import { workdirFault } from '@penstock/pipeline';
import type { Checkouts } from './checkouts.ts';
import { NotPrepared } from './errors.ts';
import type { Packages } from './packages.ts';
import { fillShared, layOutMissing, type InheritedSource } from './shared-files.ts';

export interface Sources {
  readonly checkouts: Pick<Checkouts, 'filling'>;
  readonly packages: Pick<Packages, 'copyTo'>;
  /** What earlier stages have kept, laid over what `fill` makes. */
  readonly inherited: InheritedSource;
}

export interface Prepared {
  readonly folders: StageFolders;
  /** The copy that this attempt has of its extension's package. */
  readonly packageFolder: string | undefined;
  /** What `$SERVICE_MASK` names; the stage makes it. */
  readonly maskFile: string;
  /** What `$SERVICE_STAGES` names, where the stage may add stages; it makes the file. */
  readonly stagesFile?: string | undefined;
  /** What is to be found by later runs once the stage has succeeded. */
  readonly caches?: readonly CacheToSave[] | undefined;
  /** Of caches, where they cannot be laid out in its folders: what is to lie over those. */
  readonly cachedFolder?: string | undefined;
}

/** Whether there is something to fetch, which may take its time. */
export function needsFetching({ origin, extension, inherits, caches }: Job): boolean {
  if (inherits !== undefined || caches !== undefined) return true;
  return extension !== undefined || (origin.cloneUrl !== undefined && origin.commit !== undefined);
}

/** @throws NotPrepared; the signal's reason */
export async function prepareStage(
  job: Job,
  workspaces: Pick<Workspaces, 'prepare' | 'finish' | 'contentsOf'>,
  { checkouts, packages, inherited }: Sources,
  signal: AbortSignal,
  {
    user,
    filesStayInside = false,
    cloneSecret,
  }: {
    readonly user?: StageUser | undefined;
    readonly filesStayInside?: boolean | undefined;
    readonly cloneSecret?: (() => Promise<CloneSecret | undefined>) | undefined;
  } = {},
): Promise<Prepared> {
  const fault = workdirFault(job.workdir ?? '');
  if (fault !== undefined) throw new NotPrepared(`the stage cannot start: ${fault}`);
  // A name for files: stage names may hold anything.
  const attempt = randomUUID();
  const fresh = filesStayInside || job.workspace === 'fresh';
  const fill = inherited.filling(job, checkouts.filling(job, signal, user, cloneSecret), signal, user);
  const folders = await workspaces.prepare({
    runId: job.runId,
    attempt,
    // What a stranger's stages have set of a folder that is empty (a default ACL, say) would be there for those that have secrets.
    key: job.origin.trusted === false ? undefined : job.key,
    signal,
    // What the stage is given is a copy: no other one would see what it changes, nor it what they do.
    fresh,
    declaresOutputs: job.outputs.length > 0,
    user,
    fill: fill === undefined || fresh ? fill : (path) => fillShared(path, fill, job, workspaces),
  });
  const maskFile = join(folders.home, `mask-${attempt}`);
  const files = {
    maskFile,
    ...(job.generates === undefined ? {} : { stagesFile: join(folders.home, `stages-${attempt}`) }),
  };
  const packageFolder = job.extension === undefined ? undefined : join(folders.home, `extension-${attempt}`);
  try {
    if (!fresh && job.inherits !== undefined)
      await layOutMissing(job, folders.workspace, workspaces, inherited, { signal, user });
    if (job.extension !== undefined && packageFolder !== undefined)
      await packages.copyTo(packageFolder, job.extension, signal, user);
  } catch (error) {
    await workspaces.finish(folders);
    throw error;
  }
  return { folders, packageFolder, ...files };
}

/** Of the files that a stage may make, those that were found. */
export interface FilesMade {
  readonly masks: boolean;
  readonly outputs: boolean;
}

/** After the attempt's outputs were read. What a process that lives on makes later goes with the run's folder. */
export async function clearAfterStage(
  { folders, packageFolder, maskFile, stagesFile, cachedFolder }: Prepared,
  workspaces: Pick<Workspaces, 'finish'>,
  made: FilesMade,
): Promise<void> {
  await Promise.all([
    ...(made.masks ? [removeTree(maskFile)] : []),
    ...(stagesFile === undefined ? [] : [removeTree(stagesFile)]),
    ...(cachedFolder === undefined ? [] : [removeTree(cachedFolder)]),
    ...(made.outputs || folders.fresh ? [workspaces.finish(folders)] : []),
    ...(packageFolder === undefined ? [] : [removeTree(packageFolder)]),
  ]);
}
