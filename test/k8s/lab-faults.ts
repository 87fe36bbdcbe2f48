/**
 * What is done to a lab: a cluster of one real node whose programs write their numbers to `<run>/pid`, and whose scripts `up.sh` and
 * `up-node.sh` start again what has died. Each fault is over when the lab is whole again.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pause } from '@penstock/async';
import type { Random } from '../support/random.ts';

const run = promisify(execFile);
const MEND_MS_MAX = 120_000;
const MEND_TRIES_MAX = 4;

export const LAB_FAULTS = ['api-killed', 'kubelet-stopped', 'containerd-restarted', 'node-drained'] as const;
export type LabFault = (typeof LAB_FAULTS)[number];

export interface LabPlace {
  /** Where its scripts are. */
  readonly folder: string;
  /** Where its state is. */
  readonly run: string;
  /** The variables that it was started with. */
  readonly env: Readonly<Record<string, string>>;
}

export async function doTo(lab: LabPlace, fault: LabFault, namespace: string, random: Random): Promise<void> {
  if (fault === 'node-drained') {
    await kubectl(lab, ['cordon', 'node-0']);
    const pods = (await kubectl(lab, ['-n', namespace, 'get', 'pods', '-o', 'name'])).split('\n').filter(Boolean);
    for (const pod of pods) await evict(lab, namespace, pod.replace('pod/', ''));
    await pause(1_000 + random.int(5_000));
    await kubectl(lab, ['uncordon', 'node-0']);
    return;
  }
  const program = { 'api-killed': 'apiserver', 'kubelet-stopped': 'kubelet', 'containerd-restarted': 'containerd' }[
    fault
  ];
  killProgram(lab, program);
  await pause(fault === 'kubelet-stopped' ? 1_000 + random.int(20_000) : 500 + random.int(4_000));
  await mend(lab);
}

/** Starts what is not running. On a busy machine a program may take longer to be ready than the scripts wait. */
export async function mend(lab: LabPlace): Promise<void> {
  // npm sets variables that these scripts take for theirs (NODE).
  const { PATH, HOME } = process.env;
  const options = { cwd: lab.folder, env: { PATH, HOME, ...lab.env, RUN: lab.run }, timeout: MEND_MS_MAX };
  for (let tries = 1; ; tries += 1) {
    try {
      await run(join(lab.folder, 'up.sh'), [], options);
      await run(join(lab.folder, 'up-node.sh'), [], options);
      return;
    } catch (error) {
      if (tries === MEND_TRIES_MAX) throw error;
    }
  }
}

export async function kubectl(lab: LabPlace, words: readonly string[], input?: string): Promise<string> {
  const kubeconfig = join(lab.run, 'admin.kubeconfig');
  const program = run(
    join(lab.folder, 'bin', 'kubectl'),
    ['--kubeconfig', kubeconfig, '--request-timeout=20s', ...words],
    {
      timeout: 60_000,
      maxBuffer: 16 * 1024 * 1024,
    },
  );
  program.child.stdin?.end(input);
  return (await program).stdout;
}

/** The program's own number, which the lab's scripts have written; nothing else is ended. */
function killProgram(lab: LabPlace, program: string): void {
  const pid = Number(readFileSync(join(lab.run, 'pid', program), 'utf8'));
  if (pid > 1) process.kill(pid, 'SIGKILL');
}

async function evict(lab: LabPlace, namespace: string, name: string): Promise<void> {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  // One that has ended meanwhile is not there.
  await kubectl(lab, ['create', '--raw', path, '-f', '-'], JSON.stringify(eviction)).catch(() => {});
}
