import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  auditCollections,
  AuditRepository,
  openSqliteStore,
  StoreUnavailable,
  type AuditEntry,
  type Collection,
  type DocumentStore,
} from '../src/index.ts';

const AT = 1_795_000_000_000;

describe('audit log', () => {
  let folder: string;
  let store: DocumentStore;
  const warned: Record<string, unknown>[] = [];
  const log = { warn: (fields: Record<string, unknown>) => void warned.push(fields) };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-audit-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: auditCollections,
      synchronous: 'normal',
    });
    warned.length = 0;
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  function entry(number: number, fields: Partial<AuditEntry> = {}): AuditEntry {
    return {
      at: AT + number,
      actor: `user/${number}`,
      action: 'login',
      target: '',
      outcome: 'ok',
      ip: '203.0.113.7',
      ...fields,
    };
  }

  it('gives back what was recorded, the newest first, as many as asked for', async () => {
    const audit = new AuditRepository(store, { log });
    for (let number = 0; number < 500; number++) audit.record(entry(number));
    audit.record(entry(500, { ip: undefined, target: 'run-1', outcome: 'FORBIDDEN' }));
    await audit.close();
    const newest = await audit.newest(3);
    expect(newest).toEqual([
      { at: AT + 500, actor: 'user/500', action: 'login', target: 'run-1', outcome: 'FORBIDDEN' },
      entry(499),
      entry(498),
    ]);
    expect(await audit.newest(1_000)).toHaveLength(501);
  });

  it('AUDIT-1: recording neither waits nor throws, and what was recorded while the store was away is written once it is back', async () => {
    const rows = flaky(store, 1);
    const audit = new AuditRepository(rows.store, { log });
    audit.record(entry(1));
    await rows.failed;
    audit.record(entry(2));
    await audit.close();
    expect((await audit.newest(10)).map(({ at }) => at)).toEqual([AT + 2, AT + 1]);
    expect(warned).toEqual([expect.objectContaining({ waiting: expect.any(Number) })]);
  });

  it('AUDIT-2: beyond 10,000 waiting entries further ones are dropped, and their number is told', async () => {
    const rows = flaky(store, 1);
    const audit = new AuditRepository(rows.store, { log });
    for (let number = 0; number < 10_025; number++) audit.record(entry(number));
    await rows.failed;
    await audit.close();
    expect(warned).toContainEqual({ dropped: 25 });
    expect((await audit.newest(1))[0]?.at).toBe(AT + 9_999);
  });

  it('AUDIT-3: a batch that is written again changes and doubles nothing', async () => {
    const rows = flaky(store, 1, 'after writing');
    const audit = new AuditRepository(rows.store, { log });
    audit.record(entry(1));
    await rows.failed;
    await audit.close();
    expect(await audit.newest(10)).toEqual([entry(1)]);
  });

  it('AUDIT-4: text of any length and form is cut and kept', async () => {
    const audit = new AuditRepository(store, { log });
    audit.record(entry(1, { actor: `\u{d800}${'x'.repeat(5_000)}` }));
    await audit.close();
    expect((await audit.newest(1))[0]?.actor).toBe(`\u{fffd}${'x'.repeat(299)}`);
  });
});

/** The store, whose first `times` batches fail. */
function flaky(
  store: DocumentStore,
  times: number,
  when: 'before writing' | 'after writing' = 'before writing',
): { readonly store: DocumentStore; readonly failed: Promise<void> } {
  const failed = Promise.withResolvers<void>();
  let left = times;
  return {
    failed: failed.promise,
    store: {
      collection(spec) {
        const rows = store.collection(spec);
        const replaceNewer: typeof rows.replaceNewer = async (documents) => {
          if (left === 0) return await rows.replaceNewer(documents);
          left -= 1;
          if (when === 'after writing') await rows.replaceNewer(documents);
          failed.resolve();
          throw new StoreUnavailable('of the test', 'away');
        };
        return { list: rows.list.bind(rows), replaceNewer } as unknown as Collection<typeof spec>;
      },
      ping: () => store.ping(),
      close: () => store.close(),
    },
  };
}
