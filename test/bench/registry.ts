/**
 * Searching the registry: 10,000 extensions with 5 versions each in a store, the index read from it, and the same questions
 * asked of an FTS5 table with the same rows in the same run, in turn.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { loadTiers } from '@penstock/config';
import { openFolderStore } from '@penstock/object-store';
import { EXTENSION_CATEGORIES } from '@penstock/pipeline';
import { registryCollections } from '@penstock/registry';
import { extensionKey, extensionsSpec, Registry, type ExtensionRecord } from '@penstock/registry/testing';
import { openSqliteStore, type DocumentStore, runCollections } from '@penstock/store';
import { temporaryFolder } from '../support/server.ts';
import { silentLog } from '@penstock/telemetry/log';

const EXTENSIONS = 10_000;
const VERSIONS = 5;
const LIMIT = 20;
const ROUNDS = 40;
const TOOLS = [
  'node',
  'python',
  'docker',
  'go',
  'rust',
  'terraform',
  'helm',
  'gradle',
  'maven',
  'cmake',
  'bazel',
  'ansible',
  'slack',
  'mail',
  'junit',
  'coverage',
  'cache',
  'secrets',
  'licence',
  'image',
];
const WORDS = [
  'builds',
  'tests',
  'deploys',
  'checks',
  'sends',
  'signs',
  'scans',
  'packs',
  'caches',
  'uploads',
  'a',
  'the',
  'package',
  'container',
  'cluster',
  'report',
  'channel',
  'summary',
  'release',
  'artifact',
  'fast',
  'incremental',
  'parallel',
  'with',
  'from',
  'into',
  'each',
  'commit',
  'branch',
  'tag',
  'registry',
  'workspace',
  'service',
  'browser',
  'database',
  'migration',
  'coverage',
  'vulnerabilities',
  'dependencies',
  'lockfile',
];
/** From many hits to few: words of one extension in two, in twenty, in ten thousand; unfinished ones; several. */
const QUESTIONS = [
  'builds',
  'node',
  'docker',
  'cont',
  'docker image',
  'deploys cluster',
  'terraform 77',
  'migration database',
  'python-4242',
  'vuln',
  'scans dependencies lockfile',
  'helm rel',
];

export async function benchRegistry(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-registry-');
  const store = await openSqliteStore({
    path: join(folder.path, 'store.db'),
    collections: [...registryCollections, ...runCollections],
  });
  try {
    const records = await seed(store);
    const registry = new Registry({
      store,
      objects: await openFolderStore(join(folder.path, 'objects')),
      tiers: loadTiers(),
      policy: 'any',
      log: silentLog,
    });
    const heapBefore = usedHeap();
    const begin = performance.now();
    await registry.load();
    const loadMs = performance.now() - begin;
    const heap = usedHeap() - heapBefore;
    const ask = (query: string): number =>
      registry.search({ caller: { tenant: 'user/u1', tier: 'pro', isAdmin: false }, query, limit: LIMIT }).length;
    const askTable = ftsOf(records);
    const [ours, peer] = [new Map<string, number[]>(), new Map<string, number[]>()];
    for (let round = 0; round < ROUNDS; round++) {
      for (const question of QUESTIONS) {
        const [a, b] =
          round % 2 === 0
            ? [timed(() => ask(question)), timed(() => askTable(question))]
            : [timed(() => askTable(question)), timed(() => ask(question))].toReversed();
        // The first rounds warm both up.
        if (round < 5) continue;
        note(ours, question, a as number);
        note(peer, question, b as number);
      }
    }
    const [p50, peerP50] = [median([...ours.values()].flat()), median([...peer.values()].flat())];
    const ratios = QUESTIONS.map((question) => median(ours.get(question) ?? []) / median(peer.get(question) ?? []));
    const misspelt = median(Array.from({ length: ROUNDS }, () => timed(() => ask('teraform modlue'))));
    const all = median(Array.from({ length: ROUNDS }, () => timed(() => ask(''))));
    return [
      `search in ${EXTENSIONS.toLocaleString('en-US')} extensions of ${VERSIONS} versions: p50 ${p50.toFixed(2)} ms, p99 ${quantile([...ours.values()].flat(), 0.99).toFixed(2)} ms`,
      `  FTS5 over the same rows in memory: p50 ${peerP50.toFixed(2)} ms, p99 ${quantile([...peer.values()].flat(), 0.99).toFixed(2)} ms; ours / FTS5 ${(p50 / peerP50).toFixed(2)} (aim: at most 3)`,
      `  by question, ours / FTS5: ${QUESTIONS.map((question, index) => `${question} ${(ratios[index] ?? 0).toFixed(1)}`).join(', ')}`,
      `  misspelt words (FTS5 finds none): p50 ${misspelt.toFixed(2)} ms; no words at all: p50 ${all.toFixed(2)} ms`,
      `the index is read from the store in ${loadMs.toFixed(0)} ms and holds ${(heap / 1024 / 1024).toFixed(0)} MiB`,
    ];
  } finally {
    await store.close();
    folder.remove();
  }
}

async function seed(store: DocumentStore): Promise<ExtensionRecord[]> {
  let state = 1;
  const random = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const records = Array.from({ length: EXTENSIONS }, (_, index): ExtensionRecord => {
    const extensionId = `${pick(EXTENSION_CATEGORIES)}/${pick(TOOLS)}-${index}`;
    // One in ten is private, of one of a hundred tenants.
    const tenant = `user/u${random(100)}`;
    const scope = index % 10 === 0 ? tenant : '';
    const description = Array.from({ length: 12 }, () => pick(WORDS)).join(' ');
    const versions = Array.from({ length: VERSIONS }, (_v, version) => ({
      version: `1.${version}.0`,
      packageHash: createHash('sha256').update(`${extensionId}@${version}`).digest('hex'),
      sizeBytes: 4_096,
      objectKey: `packages/${index}.${version}`,
      contentId: `${index}.${version}`,
      yanked: false,
      publishedAt: 1_700_000_000_000 + version,
      signature: null,
    }));
    return {
      key: extensionKey(scope, extensionId),
      scope,
      extensionId,
      tenant,
      description,
      createdAt: 1_700_000_000_000,
      updatedAt: 1_700_000_000_000,
      generation: 1,
      versions,
    };
  });
  const unique = [...new Map(records.map((record) => [record.key, record])).values()];
  const collection = store.collection(extensionsSpec);
  for (let from = 0; from < unique.length; from += 500) {
    await collection.replaceNewer(
      unique.slice(from, from + 500).map((record) => {
        const { key: id, scope, extensionId, tenant, generation } = record;
        return { id, scope, extensionId, tenant, generation, revision: 0, record: JSON.stringify(record) };
      }),
    );
  }
  return unique;
}

/** The best that SQLite does for the same question: visible rows with all words, the last perhaps unfinished, ranked alike. */
function ftsOf(records: readonly ExtensionRecord[]): (query: string) => number {
  const database = new DatabaseSync(':memory:');
  database.exec(
    "CREATE VIRTUAL TABLE extensions USING fts5(name, category, description, scope UNINDEXED, id UNINDEXED, tokenize='unicode61')",
  );
  const insert = database.prepare('INSERT INTO extensions VALUES (?, ?, ?, ?, ?)');
  for (const { extensionId, description, scope } of records) {
    const [category = '', name = ''] = extensionId.split('/');
    insert.run(name, category, description, scope, extensionId);
  }
  database.exec("INSERT INTO extensions(extensions) VALUES ('optimize')");
  const select = database.prepare(
    "SELECT id, name, category, description FROM extensions WHERE extensions MATCH ? AND (scope = '' OR scope = ?) ORDER BY bm25(extensions, 4, 1.5, 1) LIMIT ?",
  );
  return (query) => {
    const words = query.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
    return select.all(`${words.map((word) => `"${word}"`).join(' ')}*`, 'user/u1', LIMIT).length;
  };
}

function timed(work: () => unknown): number {
  const begin = performance.now();
  work();
  return performance.now() - begin;
}

function note(into: Map<string, number[]>, question: string, milliseconds: number): void {
  const times = into.get(question) ?? [];
  times.push(milliseconds);
  into.set(question, times);
}

function quantile(times: readonly number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * part)] ?? 0;
}

function median(times: readonly number[]): number {
  return quantile(times, 0.5);
}

function usedHeap(): number {
  return process.memoryUsage().heapUsed;
}
