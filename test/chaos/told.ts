/** What the services of a cluster have told of the runs in a violation, and of runners' sessions: it goes with the cluster's folder. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../cluster/cluster.ts';
import type { Violation } from './violations.ts';

const LINES_MAX = 60;
const LINE_MAX = 500;
const OF_SESSIONS = ['session is over', 'session could not begin', 'lease'];

export function toldOf(cluster: Pick<Cluster, 'folder'>, violations: readonly Violation[]): string[] {
  if (violations.length === 0) return [];
  const folder = join(cluster.folder, 'logs');
  const wanted = [...new Set(violations.map(({ runId }) => runId)), ...OF_SESSIONS];
  const lines = readdirSync(folder).flatMap((file) =>
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .filter((line) => wanted.some((text) => line.includes(text)))
      .map((line) => `  ${file}: ${line.slice(0, LINE_MAX)}`),
  );
  return ['told by the services:', ...lines.slice(0, LINES_MAX), ...(lines.length > LINES_MAX ? ['  …'] : [])];
}
