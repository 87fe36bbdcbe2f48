/** The environment of a stage: its own variables, what tells it where it is, and nothing of the runner's but its place. */
import type { StageFolders } from '@penstock/executor';
import type { Job } from '@penstock/bus';

/** Of the runner's own environment: where programs are, and how to speak to people. */
const INHERITED = ['PATH', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ'];

export function stageEnvironment(
  job: Job,
  folders: StageFolders,
  packageFolder: string | undefined,
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const { origin } = job;
  const env: Record<string, string> = { LANG: 'C.UTF-8' };
  for (const name of INHERITED) {
    const value = own[name];
    if (value !== undefined) env[name] = value;
  }
  Object.assign(env, { CI: 'true', PENSTOCK: 'true', HOME: folders.home }, job.env, {
    PENSTOCK_RUN_ID: job.runId,
    PENSTOCK_PIPELINE: job.pipelineName,
    PENSTOCK_STAGE: job.stage,
    PENSTOCK_ATTEMPT: String(job.attempt),
    PENSTOCK_WORKSPACE: folders.workspace,
    PENSTOCK_TRIGGER: origin.kind,
    SERVICE_OUTPUT: folders.outputFile,
  });
  if (packageFolder !== undefined) env['SERVICE_EXTENSION_PATH'] = packageFolder;
  if (origin.repository !== undefined) env['PENSTOCK_REPOSITORY'] = origin.repository;
  if (origin.ref !== undefined) env['PENSTOCK_REF'] = origin.ref;
  if (origin.commit !== undefined) env['PENSTOCK_COMMIT'] = origin.commit;
  return env;
}
