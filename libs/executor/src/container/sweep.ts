/** The containers that an owner's earlier processes have left: ended and removed before it starts anything (P14, P17). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openConnection } from './connection.ts';
import type { FoundEngine } from './find-engine.ts';
import { isMakerAlive, isService, ownerFilter } from './ownership.ts';

/** Answers how many there were. Rejects where one cannot be removed: an attempt of it may still run. */
export async function sweepContainers(found: FoundEngine, owner: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-sweep-'));
  const connection = await openConnection(found, join(folder, 'engine')).catch((error: unknown) => {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  });
  try {
    const all = await connection.engine.list(ownerFilter(owner));
    const left = all.filter(({ labels }) => !isMakerAlive(labels));
    for (const { name } of left) await connection.engine.kill(name).catch(() => {});
    const services = left.filter(({ labels }) => isService(labels));
    const stages = left.filter(({ labels }) => !isService(labels));
    await Promise.all(services.map(({ name }) => connection.engine.remove(name)));
    await Promise.all(stages.map(({ name }) => connection.engine.remove(name)));
    return left.length;
  } finally {
    await connection.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
