/** Containers, where this machine has podman or docker. */
import { existsSync, rmSync } from 'node:fs';
import { ContainerExecutor, findEngine, sweepContainers } from '@penstock/executor';
import type { ExecutorParts, ExecutorSource } from './executor-source.ts';

export async function findContainerSource(): Promise<ExecutorSource | string> {
  const { engine, why } = await findEngine();
  if (engine === null) return why;
  return {
    kind: 'container',
    create: (parts, guard) =>
      new ContainerExecutor({
        engine,
        guard,
        owner: ownerOf(parts),
        leftoversFile: parts.leftoversFile,
        markerFile: markerOf(parts),
        deniedHosts: parts.deniedHosts,
        limits: parts.limits,
        warn: (message) => parts.log.warn({}, message),
      }),
    sweep: async (parts) => {
      if (!existsSync(markerOf(parts))) return;
      const count = await sweepContainers(engine, ownerOf(parts));
      if (count > 0) parts.log.warn({ containers: count }, 'containers of an earlier start were removed');
      rmSync(markerOf(parts), { force: true });
    },
  };
}

function markerOf({ leftoversFile }: ExecutorParts): string {
  return `${leftoversFile}-made`;
}

/** A data folder belongs to one runner of one machine. */
function ownerOf({ runnerId, dataDir }: ExecutorParts): string {
  return JSON.stringify([runnerId, dataDir]);
}
