import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findEngine } from '../../src/container/find-engine.ts';

it('an engine that may not be executed is named by its path, beside folders that cannot be looked into', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-engine-'));
  try {
    writeFileSync(join(folder, 'podman'), '', { mode: 0o644 });
    const unlookable = `/${'a'.repeat(5_000)}`;
    const found = await findEngine({
      PATH: `${unlookable}:${folder}`,
      DOCKER_HOST: `unix://${join(folder, 'nothing')}`,
    });
    expect(found).toMatchObject({ engine: null, isInstalled: true });
    expect(found.why).toContain(`podman: ${join(folder, 'podman')} is there, and this user may not execute it`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
