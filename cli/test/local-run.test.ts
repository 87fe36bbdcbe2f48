/** A local run whose folders cannot be removed: a container may have left another user's files in them. */
import { parsePipeline } from '@penstock/pipeline';
import { expect, it, onTestFinished } from 'vitest';
import { LocalCaches } from '../src/local/local-caches.ts';
import { LocalExecutors } from '../src/local/local-executors.ts';
import { LocalRun, localRunId } from '../src/local/local-run.ts';
import { LocalWorkspace } from '../src/local/local-workspace.ts';
import { folder } from './command.ts';

class KeptWorkspace extends LocalWorkspace {
  override fresh(): Promise<string> {
    return Promise.resolve(folder());
  }

  override discard(): Promise<void> {
    return Promise.reject(Object.assign(new Error('no'), { code: 'EPERM', syscall: 'unlink' }));
  }
}

it('a stage whose copy of the files stays has succeeded all the same, and says so', async () => {
  const yaml = 'pipeline: {name: p}\nstages: {a: {run: echo done, workspace: fresh}, b: {run: echo later, after: a}}\n';
  const parsed = parsePipeline(yaml);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
  const executors = new LocalExecutors({ slots: 1, warn: () => {} });
  const workspace = new KeptWorkspace(folder());
  onTestFinished(async () => {
    await executors.close();
    await workspace.remove();
  });
  const lines: string[] = [];
  const run = new LocalRun({
    ...{ id: localRunId(), definition: parsed.definition, yaml, inputs: {}, workspace, executors, slots: 1 },
    reporter: { event: () => {}, lines: (_, __, bytes) => void lines.push(bytes.toString()), finish: () => {} },
    ...{ secrets: new Map(), caches: new LocalCaches(folder()), inheritedEnv: { PATH: process.env['PATH'] ?? '' } },
    ...{ extensionFolders: new Map(), keepText: false, askGate: () => Promise.resolve(undefined) },
  });
  run.start();
  expect((await run.settled).status).toBe('SUCCESS');
  expect(lines).toEqual(['done\n', expect.stringMatching(/ could not be removed: no permission\n$/), 'later\n']);
});
