/** From a message to the owner of a partition to the call that it becomes, with a partition of the test's. */
import { packText, type ResultRequest } from '@penstock/bus';
import type { ParseResult } from '@penstock/pipeline';
import { silentLogger } from '@penstock/telemetry';
import { failuresAt } from '@penstock/telemetry/borders';
import { describe, expect, it, vi } from 'vitest';
import type { DefinitionSource } from '../src/run/definitions.ts';
import { RequestDesk, type RequestDeskOptions } from '../src/shell/request-desk.ts';

type Reply = (answer: unknown) => void;

const parsed: ParseResult = { ok: true, definition: { name: 'added', schedule: [], stages: [] } };
const source: DefinitionSource = { find: () => expect.unreachable('nobody reads it here') };
const adding = { runId: 'run', stage: 'a', status: 'success', added: packText('stages: []') } as ResultRequest;

/** A desk whose partition answers each call with its name, and says what it was called with. */
function desk(given: { readonly adds?: boolean; readonly fails?: boolean } = {}) {
  const calls: unknown[][] = [];
  const answering =
    (name: string) =>
    (...args: unknown[]): void => {
      if (given.fails === true) throw new Error('a fault in the partition');
      const reply = args.find((arg): arg is Reply => typeof arg === 'function');
      calls.push([name, ...args.filter((arg) => arg !== reply)]);
      reply?.({ answeredBy: name });
    };
  const names = [
    'create',
    'cancel',
    'delete',
    'approve',
    'decide',
    'get',
    'watch',
    'waits',
    'setSchedule',
    'schedules',
  ];
  const all = [...names, 'pauseSchedule', 'openRuns', 'attempt', 'result'];
  const partition = {
    ...Object.fromEntries(all.map((name) => [name, answering(name)])),
    addedOptions: () => (given.adds === true ? { options: {}, key: 'ada' } : undefined),
  } as unknown as RequestDeskOptions['partition'];
  const reading = Promise.withResolvers<ParseResult>();
  const read = vi.fn<(text: string, options: unknown, key: string) => Promise<ParseResult>>(() => reading.promise);
  const taken: ((source: DefinitionSource) => void)[] = [];
  const called = vi.fn<() => void>();
  const warn = vi.fn<(about: unknown, line: string) => void>();
  const it = new RequestDesk({
    number: 3,
    partition,
    intake: { take: (_request, decide) => void taken.push(decide) },
    readAdded: read,
    log: { ...silentLogger(), warn } as never,
    called,
  });
  const take = (verb: string, body: unknown = {}) => {
    const said: unknown[] = [];
    it.take(body, {
      subject: `run.3.${verb}`,
      request: undefined,
      answer: (answer) => void said.push(answer),
      fail: () => void said.push('failed'),
      drop: () => void said.push('dropped'),
    });
    return said;
  };
  return { take, calls, taken, called, read, reading, warn };
}

describe('the desk of a partition', () => {
  it.each([
    ['cancel', 'cancel'],
    ['delete', 'delete'],
    ['approve', 'approve'],
    ['decide', 'decide'],
    ['get', 'get'],
    ['watch', 'watch'],
    ['waits', 'waits'],
    ['schedule', 'setSchedule'],
    ['schedules', 'schedules'],
    ['pause', 'pauseSchedule'],
    ['open', 'openRuns'],
    ['attempt', 'attempt'],
  ])('`%s` becomes one call, and is answered by it', (verb, name) => {
    const { take, calls, called } = desk();
    expect(take(verb, { runId: 'run' })).toEqual([{ answeredBy: name }]);
    expect(calls).toEqual([[name, { runId: 'run' }]]);
    expect(called).toHaveBeenCalledOnce();
  });

  it('a verb that no owner knows is failed at once', () => {
    const { take, calls } = desk();
    expect(take('guess')).toEqual(['failed']);
    expect(calls).toEqual([]);
  });

  it('DESK-1: what throws fails its own request, and is counted', () => {
    const { take } = desk({ fails: true });
    const before = failuresAt('partition.request');
    expect(take('get')).toEqual(['failed']);
    expect(take('result.r1')).toEqual(['failed']);
    expect(failuresAt('partition.request')).toBe(before + 2);
  });

  it('a run is made once its text has been read', () => {
    const { take, calls, taken, called } = desk();
    const said = take('create', { runId: 'run' });
    expect(calls).toEqual([]);
    called.mockClear();
    taken[0]?.(source);
    expect(calls).toEqual([['create', { runId: 'run' }, source]]);
    expect(said).toEqual([{ answeredBy: 'create' }]);
    expect(called).toHaveBeenCalledOnce();
  });

  it('DESK-1: a run that cannot be made after its text has been read is failed', () => {
    const { take, taken } = desk({ fails: true });
    const said = take('create', { runId: 'run' });
    taken[0]?.(source);
    expect(said).toEqual(['failed']);
  });

  it('a result is of the runner that its subject names', () => {
    const { take, calls } = desk();
    const result = { runId: 'run', stage: 'a', status: 'failed' };
    expect(take('result.r1', result)).toEqual([{ answeredBy: 'result' }]);
    expect(calls).toEqual([['result', result, 'r1']]);
  });

  it('a result that adds stages is decided once these have been read, in the turn of its key', async () => {
    const { take, calls, read, reading, called } = desk({ adds: true });
    const said = take('result.r1', adding);
    expect(read).toHaveBeenCalledWith('stages: []', {}, 'ada');
    expect(said).toEqual([]);
    called.mockClear();
    reading.resolve(parsed);
    await vi.waitFor(() => expect(said).toEqual([{ answeredBy: 'result' }]));
    const added = { text: 'stages: []', meaning: parsed.ok && parsed.definition };
    expect(calls).toEqual([['result', adding, 'r1', added]]);
    expect(called).toHaveBeenCalledOnce();
  });

  it('what a result adds that means nothing, or cannot be unpacked, is decided as such', async () => {
    const bad = desk({ adds: true });
    bad.take('result.r1', adding);
    bad.reading.resolve({ ok: false, diagnostics: [] });
    await vi.waitFor(() => expect(bad.calls).toHaveLength(1));
    expect(bad.calls[0]?.at(-1)).toEqual({ text: 'stages: []', meaning: undefined });

    const packedBadly = desk({ adds: true });
    packedBadly.take('result.r1', { ...adding, added: 'no text' });
    expect(packedBadly.calls[0]?.at(-1)).toEqual({ text: undefined, meaning: undefined });
    expect(packedBadly.read).not.toHaveBeenCalled();
  });

  it('nobody reads what a result adds that is not waited for', () => {
    const { take, read } = desk();
    expect(take('result.r1', adding)).toEqual([{ answeredBy: 'result' }]);
    expect(read).not.toHaveBeenCalled();
  });

  it('a result whose stages cannot be read in time is not answered: its runner sends it again', async () => {
    const { take, calls, reading, warn } = desk({ adds: true });
    const said = take('result.r1', adding);
    reading.reject(new Error('too late'));
    await vi.waitFor(() => expect(warn).toHaveBeenCalledOnce());
    expect(said).toEqual([]);
    expect(calls).toEqual([]);
  });

  it('DESK-1: a result that cannot be decided after its stages have been read is failed', async () => {
    const { take, reading } = desk({ adds: true, fails: true });
    const said = take('result.r1', adding);
    reading.resolve(parsed);
    await vi.waitFor(() => expect(said).toEqual(['failed']));
  });
});
