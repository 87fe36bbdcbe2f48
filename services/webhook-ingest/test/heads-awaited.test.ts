/** P27: which heads are waited for, and how long. */
import { describe, expect, it } from 'vitest';
import type { Delivery } from '../src/model/delivery.ts';
import { HeadsAwaited } from '../src/processing/heads-awaited.ts';

const MINUTE = 60_000;

const pull = (commit: string, before?: string, more: Partial<Delivery> = {}): Delivery =>
  ({
    id: `id of ${commit}`,
    key: 'service/acme',
    provider: 'git_host_a',
    repository: 'acme/demo',
    commit,
    pullRequest: { number: 7, before } as Delivery['pullRequest'],
    ...more,
  }) as Delivery;
const ofAnother = { pullRequest: { number: 8, before: 'a' } as Delivery['pullRequest'] };

describe('the head of a pull request', () => {
  it('is waited for a minute, wherever its ref stands', () => {
    let now = 0;
    const heads = new HeadsAwaited(() => now);
    expect(heads.mayMove(pull('a'), null, [])).toBe(true);
    now = MINUTE - 1;
    expect(heads.mayMove(pull('a'), 'z', [])).toBe(true);
    now = MINUTE;
    expect(heads.mayMove(pull('a'), 'z', [])).toBe(false);
    heads.forget(pull('a').id);
    expect(heads.mayMove(pull('a'), 'z', [])).toBe(true);
  });

  it('is not waited for where it moved on, over however many commits', () => {
    const heads = new HeadsAwaited(() => 0);
    const behind = [pull('b', 'a'), pull('c', 'b'), pull('d', 'c')];
    for (const head of ['b', 'c', 'd']) expect(heads.mayMove(pull('a'), head, behind), head).toBe(false);
  });

  it.each([
    ['nothing has been told of where the ref stands', 'z', [pull('b', 'a')]],
    ['the commit before is not told', 'b', [pull('b')]],
    ['what came after it is of another pull request', 'b', [pull('b', 'a', ofAnother)]],
    ['what came after it is of another repository', 'b', [pull('b', 'a', { repository: 'acme/other' })]],
    ['what came after it is of another key', 'b', [pull('b', 'a', { key: 'service/strangers' })]],
    ['the ref is not there', null, [pull('b', 'a')]],
    ['the ref stands where it stood before', 'a', [pull('b', 'a')]],
  ] as const)('is waited for where %s', (_, head, behind) => {
    const delivery = head === 'a' ? pull('n', 'a') : pull('a');
    expect(new HeadsAwaited(() => 0).mayMove(delivery, head, behind)).toBe(true);
  });

  it('that waits behind others of its pull request is not waited for anew', () => {
    let now = 0;
    const heads = new HeadsAwaited(() => now);
    const behind = [pull('b'), pull('c'), pull('other', 'a', ofAnother)];
    expect(heads.mayMove(pull('a'), 'z', behind)).toBe(true);
    now = MINUTE;
    for (const delivery of [pull('a'), pull('b'), pull('c')]) expect(heads.mayMove(delivery, 'z', [])).toBe(false);
    expect(heads.mayMove(pull('other', 'a', ofAnother), 'z', [])).toBe(true);
  });

  it('HEADS-3: is not waited for where five hundred others of its key are, until one of those is decided, or nobody can be waiting for them', () => {
    let now = 0;
    const heads = new HeadsAwaited(() => now);
    for (let at = 0; at < 500; at += 1) heads.mayMove(pull(`${at}`), 'z', []);
    expect(heads.mayMove(pull('one more'), 'z', [])).toBe(false);
    expect(heads.mayMove(pull('of others', undefined, { key: 'user/others' }), 'z', [])).toBe(true);
    heads.forget(pull('7').id);
    heads.forget(pull('7').id);
    expect(heads.mayMove(pull('one more'), 'z', [])).toBe(true);
    expect(heads.mayMove(pull('another'), 'z', [])).toBe(false);
    now = 10 * MINUTE;
    expect(heads.mayMove(pull('another'), 'z', [])).toBe(true);
  });
});
