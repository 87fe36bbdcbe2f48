/** What an executor is given to start the stage of one attempt with. */
import { resolve } from 'node:path';
import type { Job } from '@penstock/bus';
import { stageEnvironment, type StageSecrets, type StageSpec } from '@penstock/executor';
import { laidOverOf } from '../caches/attempt-caches.ts';
import type { Prepared } from '../workspace/preparation.ts';
import { inheritedEnvironment } from './inherited-environment.ts';

type GivenAsIs = 'user' | 'place' | 'timeoutMs' | 'graceMs' | 'renewedFiles' | 'leavings';

export interface StageToStart extends Pick<StageSpec, GivenAsIs> {
  readonly job: Job;
  readonly prepared: Prepared;
  /** Of the runner. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The stage finds the runner's own programs, and no image's. */
  readonly sharesPrograms: boolean;
  /** What the operator gives every stage. */
  readonly lent: Readonly<Record<string, string>> | undefined;
  /** By which programs of the stage join its trace. */
  readonly traced: Readonly<Record<string, string>>;
  readonly secrets: Pick<StageSecrets, 'env' | 'files'>;
}

/** In its environment what the pipeline says stands above what is inherited and lent, and its secrets above that. */
export function stageSpecOf({
  job,
  prepared,
  environment,
  sharesPrograms,
  lent,
  traced,
  secrets,
  ...given
}: StageToStart): StageSpec {
  const { folders, packageFolder, maskFile, stagesFile } = prepared;
  return {
    ...given,
    helperKey: job.key,
    commands: job.commands,
    env: stageEnvironment(
      { ...inheritedEnvironment(environment, folders.home, sharesPrograms), ...lent },
      { ...traced, ...job.env, ...secrets.env },
      {
        runId: job.runId,
        pipeline: job.pipelineName,
        stage: job.stage,
        attempt: job.number ?? job.attempt,
        workspace: folders.workspace,
        outputFile: folders.outputFile,
        maskFile,
        stagesFile,
        trigger: job.origin.kind,
        repository: job.origin.repository,
        ref: job.origin.ref,
        commit: job.origin.commit,
        extensionFolder: packageFolder,
      },
    ),
    shell: job.shell,
    files: secrets.files,
    folders: [folders.home],
    contents: [folders.workspace, folders.outputFile, ...(packageFolder === undefined ? [] : [packageFolder])],
    laidOver: laidOverOf(prepared),
    run: {
      folder: folders.home,
      temporary: folders.temporary,
      identity: folders.identity,
      occupant: job.runId,
    },
    cwd: job.workdir === undefined || job.workdir === '' ? folders.workspace : resolve(folders.workspace, job.workdir),
  };
}
