/** A stage as what its guard is given: texts by name, put into the guard's folder by the line. */
import { renderJob, type StageSpec } from '@penstock/executor';
import { GUARD_FOLDER } from './pod-manifest.ts';

export interface PodJob {
  /** By the name of their file; the job itself is `job.new`. */
  readonly files: ReadonlyMap<string, string>;
}

/** @throws UnstartableStage */
export function renderPodJob(spec: StageSpec, emptyFolders: readonly string[]): PodJob {
  const files = new Map<string, string>();
  const keep = (script: string): string => {
    const name = `script-${files.size}`;
    files.set(name, script);
    return `${GUARD_FOLDER}/${name}`;
  };
  // The PATH is the image's.
  const { text } = renderJob(spec, keep, { defaults: {} });
  const entrypoint = spec.place?.image?.entrypoint ?? [];
  if (entrypoint.length > 0) files.set('entry', `set -- ${entrypoint.map(quote).join(' ')}`);
  const folders = emptyFolders.map((folder) => `mkdir -p ${quote(folder)} 2>/dev/null\n`).join('');
  files.set('job.new', `umask 022\n${folders}${text.toString('utf8')}`);
  return { files };
}

function quote(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
