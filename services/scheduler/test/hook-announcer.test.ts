import type { AnnouncementType } from '@penstock/run';
import type { HookBacklog, NewHookDelivery } from '@penstock/store';
import { LiveRun } from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';
import { HookAnnouncer } from '../src/shell/hook-announcer.ts';
import { definitions, Harness, stage, text } from './support.ts';

/** A store with one hook of the tenant that the harness's runs have. */
class Outbox {
  readonly added: NewHookDelivery[] = [];
  readonly leftOut: number[] = [];
  readonly woken: string[] = [];
  backlog: HookBacklog = { deliveries: 0, bytes: 0 };
  events: readonly AnnouncementType[] = ['run.started', 'run.completed'];
  repository = '';
  isAway = false;
  boot = 0;
  readonly announcer = new HookAnnouncer({
    ledger: {
      hooksOf: async (tenants) =>
        tenants.map((tenant) => ({ id: 'h', tenant, events: this.events, repository: this.repository })),
      addHookDeliveries: async (deliveries) => {
        if (this.isAway) throw new Error('away');
        this.added.push(...deliveries);
      },
      hookBacklog: async () => this.backlog,
    },
    log: { warn: () => {}, error: () => {} },
    bootNow: () => this.boot,
    wallNow: () => 1_000,
    turn: async () => {},
    onWaiting: (hooks) => void this.woken.push(...hooks),
    onLeftOut: (count) => void this.leftOut.push(count),
  });

  get told(): string[] {
    return this.added.map(({ event, version }) => `${event} ${version}`);
  }
}

function endedRun(harness: Harness): { readonly run: LiveRun; readonly events: LiveRun['events'] } {
  const { id } = harness.create('', { ended: { pipelineName: 'p', status: 'SKIPPED' } });
  harness.settle();
  const run = [...harness.partition.liveRuns].find((each) => each.id === id);
  if (run === undefined) throw new RangeError('there is no such run');
  return { run, events: run.events };
}

describe('what webhooks are told', () => {
  it('P35: is each event once, in the order of the run; what the store did not take is told the next time', async () => {
    const outbox = new Outbox();
    const { run, events } = endedRun(new Harness());
    outbox.isAway = true;
    await expect(outbox.announcer.announce([{ run, events }])).rejects.toThrow('away');
    outbox.isAway = false;
    await outbox.announcer.announce([{ run, events: events.slice(0, 1) }]);
    await outbox.announcer.announce([{ run, events }]);
    await outbox.announcer.announce([{ run, events }]);
    expect(outbox.told).toEqual(['run.started 1', 'run.completed 2']);
    expect(outbox.woken).toEqual(['h', 'h']);
    expect(outbox.added[1]).toMatchObject({ hook: 'h', run: run.id, createdAt: 1_000 });
    expect(JSON.parse(outbox.added[0]?.body ?? '')).toMatchObject({ data: { run: { status: 'PENDING' } } });
  });

  it('P35: is the run as it stood at each event, also where several are told at once', async () => {
    const outbox = new Outbox();
    const { run, events } = endedRun(new Harness());
    await outbox.announcer.announce([{ run, events }]);
    const told = outbox.added.map(({ body }) => JSON.parse(body) as { data: { run: { status: string } } });
    expect(told.map(({ data }) => data.run.status)).toEqual(['PENDING', 'SKIPPED']);
  });

  it('P35: of a run that was taken over is what its document does not stand for yet', async () => {
    const { run, events } = endedRun(new Harness());
    for (const [inDocument, told] of [
      [0, ['run.started 1', 'run.completed 2']],
      [1, ['run.completed 2']],
      [2, []],
    ] as const) {
      const outbox = new Outbox();
      const { definition } = definitions.find(text([stage('a')]), []);
      const restored = LiveRun.restore(
        run.id,
        definition,
        { events: [...events], sequence: 1, inDocument },
        { queueTimeoutMs: 1 },
      );
      await outbox.announcer.announce([{ run: restored, events }]);
      expect(outbox.told).toEqual(told);
    }
  });

  it('is what they want to hear of, and of their repository', async () => {
    const { run, events } = endedRun(new Harness());
    const ends = new Outbox();
    ends.events = ['run.completed'];
    await ends.announcer.announce([{ run, events }]);
    expect(ends.told).toEqual(['run.completed 2']);
    const other = new Outbox();
    other.repository = 'git_host_a/acme/other';
    await other.announcer.announce([{ run, events }]);
    expect(other.told).toEqual([]);
  });

  it('is left out, and counted, while the outbox of the webhook is full, and goes on when there is room', async () => {
    const outbox = new Outbox();
    const harness = new Harness();
    outbox.backlog = { deliveries: 10_000, bytes: 1 };
    await outbox.announcer.announce([endedRun(harness)]);
    outbox.backlog = { deliveries: 0, bytes: 64 * 1024 * 1024 };
    outbox.boot += 60_000;
    await outbox.announcer.announce([endedRun(harness)]);
    expect(outbox.leftOut).toEqual([2, 2]);
    expect(outbox.told).toEqual([]);
    outbox.backlog = { deliveries: 9_999, bytes: 1 };
    outbox.boot += 60_000;
    await outbox.announcer.announce([endedRun(harness)]);
    expect(outbox.told).toEqual(['run.started 1', 'run.completed 2']);
  });
});
