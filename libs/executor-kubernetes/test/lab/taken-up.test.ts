/** Stages of a real cluster whose runner's process dies and comes again (P36): their guards are the real ones (`lab.ts`). */
import type { StageNotes, StagePiece, StageRecord } from '@penstock/executor';
import { RecordingSink } from '@penstock/executor/testing';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Cluster, ExecSocket } from '../../src/cluster/cluster.ts';
import { ClusterError } from '../../src/errors.ts';
import { labForTests, stageOf, type Lab } from './lab.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });
const found = await labForTests('stages on Kubernetes that a later process takes up');
/** Of what is run only where there is one. */
const lab = found as Lab;
afterAll(() => found?.close());

class Record implements StageRecord {
  readonly notes = new Map<string, string[]>();
  readonly output: StagePiece[] = [];
  isOver = false;

  keep(notes: Readonly<{ [name: string]: string }>, output?: StagePiece): void {
    if (this.isOver) return;
    for (const [name, value] of Object.entries(notes)) this.notes.set(name, [...(this.notes.get(name) ?? []), value]);
    if (output !== undefined) this.output.push({ ...output, bytes: Buffer.from(output.bytes) });
  }
}

/** The cluster to a process that dies: from then on nothing that it does arrives. */
function mortal(cluster: Cluster): { readonly cluster: Cluster; die(): void } {
  let isDead = false;
  const sockets = new Set<ExecSocket>();
  const gone = (): Promise<never> => Promise.reject(new ClusterError(0, 'the process is dead'));
  const own: Cluster = {
    createPod: (pod) => (isDead ? gone() : cluster.createPod(pod)),
    readPod: (name) => (isDead ? gone() : cluster.readPod(name)),
    deletePod: (name, grace) => (isDead ? gone() : cluster.deletePod(name, grace)),
    listPods: (selector) => (isDead ? gone() : cluster.listPods(selector)),
    watchPods: (...args) => (isDead ? gone() : cluster.watchPods(...args)),
    createSecret: (secret) => (isDead ? gone() : cluster.createSecret(secret)),
    giveSecret: (name, owner) => (isDead ? gone() : cluster.giveSecret(name, owner)),
    deleteSecrets: (selector) => (isDead ? gone() : cluster.deleteSecrets(selector)),
    readLog: (...args) => (isDead ? gone() : cluster.readLog(...args)),
    exec: async (...args) => {
      if (isDead) return gone();
      const socket = await cluster.exec(...args);
      sockets.add(socket);
      return socket;
    },
  };
  return {
    cluster: own,
    die: () => {
      isDead = true;
      for (const socket of sockets) socket.close();
    },
  };
}

const LINES = 60;
const numbers = Array.from({ length: LINES }, (_, index) => `line ${index}\n`).join('');

describe.runIf(found !== null)('a stage in a Pod', () => {
  it('P36: goes on under the next process: it runs once, and its output is whole and there once', async () => {
    const dying = mortal(lab.cluster);
    const first = lab.executor({ cluster: dying.cluster });
    const record = new Record();
    const sink = new RecordingSink();
    const spec = stageOf(`i=0; while [ $i -lt ${LINES} ]; do echo "line $i"; i=$((i+1)); sleep 0.1; done; exit 4`);
    void first.start(spec, sink, record).ended;
    await sink.until('line 10\n');
    record.isOver = true;
    dying.die();
    const [pod] = await lab.pods();

    const again = new RecordingSink();
    for (const { stream, bytes } of record.output) if (stream !== 'masks') again.write(stream, bytes);
    const notes: StageNotes = record.notes;
    const second = lab.executor();
    const stage = second.resume(spec, again, new Record(), notes);
    await again.until('line 30\n');
    expect(await lab.pods()).toEqual([pod]);
    expect(await stage.ended).toEqual({ kind: 'exit', code: 4 });
    expect(again.text()).toBe(numbers);
    await second.close();
    await expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
    void first.close();
  });

  it('P36: whose guard had no answer for too long has ended itself, and counts as lost', async () => {
    const dying = mortal(lab.cluster);
    const first = lab.executor({ cluster: dying.cluster });
    const record = new Record();
    const sink = new RecordingSink();
    void first.start(stageOf('echo up; sleep 600'), sink, record).ended;
    await sink.until('up\n');
    record.isOver = true;
    dying.die();
    const ended = async (): Promise<boolean> => {
      const { items } = await lab.api.listNamespacedPod({ namespace: lab.namespace });
      return items.every(({ status }) => status?.containerStatuses?.[0]?.state?.terminated !== undefined);
    };
    await expect.poll(ended, { timeout: 60_000 }).toBe(true);
    const second = lab.executor();
    const stage = second.resume(stageOf('true'), new RecordingSink(), new Record(), record.notes);
    expect(await stage.ended).toMatchObject({ kind: 'lost', cause: expect.stringContaining('not answered') });
    await second.close();
    await expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
    void first.close();
  });
});
