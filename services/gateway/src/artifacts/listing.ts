/** What the query `artifacts` lists: the outputs of a run's stages, and the files that they have kept. */
import { isoTime, type RunView } from '@penstock/run';
import { BadUserInput } from '@penstock/errors';
import type { KeptFiles } from './kept-files.ts';

export interface ArtifactView {
  readonly stage: string;
  readonly key: string;
  readonly value: string;
  readonly sizeBytes?: string;
  readonly sha256?: string;
  readonly expiresAt?: string;
}

/** In one answer, which is to stay below 8 MiB. */
const LISTED_MAX = 20_000;

/** `only`: the stage whose are listed, else those of all. */
export async function artifactsOf(run: RunView, kept: KeptFiles, only?: string): Promise<ArtifactView[]> {
  const views: ArtifactView[] = [];
  for (const stage of run.stages) {
    if (only !== undefined && stage.name !== only) continue;
    for (const { key, value } of stage.outputs) views.push({ stage: stage.name, key, value });
    const files = (await kept.of(run, stage.artifacts)) ?? [];
    if (views.length + files.length > LISTED_MAX)
      throw new BadUserInput(
        `The run keeps more than ${LISTED_MAX} files, more than one answer holds: ask for one stage at a time by 'stage'.`,
      );
    for (const { path, sizeBytes, sha256 } of files)
      views.push({
        stage: stage.name,
        key: path,
        value: downloadPath(run.id, stage.name, path),
        sizeBytes: String(sizeBytes),
        sha256,
        expiresAt: isoTime(stage.artifacts?.expiresAt ?? 0),
      });
  }
  return views;
}

/** The stage is one segment, whatever its name holds. */
function downloadPath(runId: string, stage: string, path: string): string {
  const names = path.split('/').map(encodeURIComponent);
  return `/pipeline/${runId}/artifacts/${encodeURIComponent(stage)}/${names.join('/')}`;
}
