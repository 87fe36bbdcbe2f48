/** The dashboard as it is served: its files, its policy, its addresses, and its size. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { buildServer } from '@penstock/http';
import { silentLog } from '@penstock/telemetry/log';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readBuiltFiles } from '../src/built-files.ts';
import { addDashboardRoutes } from '../src/index.ts';

const server = (): FastifyInstance =>
  buildServer({ corsOrigins: [], connectionsMax: 10, loopbackHostsOnly: false, log: silentLog });

let app: FastifyInstance;
beforeAll(async () => {
  app = server();
  addDashboardRoutes(app);
  await app.ready();
});
afterAll(() => app.close());

/** What a browser loads at first, compressed; the specification's bound. */
const SCRIPT_BYTES_MAX = 150 * 1024;

describe('the dashboard', () => {
  it('is its page at every address below its own, never kept, under a policy that lets nothing in', async () => {
    for (const url of ['/dashboard/', '/dashboard/runs/1', '/dashboard/auth/callback']) {
      const page = await app.inject(url);
      expect([page.statusCode, page.headers['cache-control'], page.headers['content-type']]).toEqual([
        200,
        'no-cache',
        'text/html; charset=utf-8',
      ]);
      expect(page.headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      );
      expect(page.body).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|style=/u);
    }
  });

  it('refers to files of its own alone, which are kept for good, plain or compressed', async () => {
    const page = await app.inject('/dashboard/');
    const references = [...page.body.matchAll(/(?:src|href)="([^"]*)"/gu)].map(([, url = '']) => url);
    expect(references.length).toBeGreaterThanOrEqual(3);
    for (const url of references) {
      expect(url).toMatch(/^\/dashboard\/assets\/[\w.-]+$/u);
      const plain = await app.inject(url);
      expect([plain.statusCode, plain.headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable']);
      const small = await app.inject({ url, headers: { 'accept-encoding': 'gzip, br' } });
      expect([small.headers['content-encoding'], small.headers['vary']]).toEqual(['br', 'Accept-Encoding']);
      expect(brotliDecompressSync(small.rawPayload).equals(plain.rawPayload)).toBe(true);
    }
    expect((await app.inject('/dashboard/assets/gone.js')).statusCode).toBe(404);
    expect((await app.inject('/dashboard/assets/..%2f.stamp')).statusCode).toBe(404);
  });

  it('loads less script at first than 150 KB compressed', () => {
    const files = readBuiltFiles();
    const page = String(files?.index.content);
    const first = [...page.matchAll(/assets\/([\w.-]+\.js)"/gu)].map(
      ([, name = '']) => files?.assets.get(name)?.content,
    );
    expect(first.length).toBeGreaterThan(0);
    const bytes = first.reduce((sum, content) => sum + gzipSync(content ?? Buffer.alloc(0)).length, 0);
    expect(bytes).toBeGreaterThan(1_000);
    expect(bytes).toBeLessThan(SCRIPT_BYTES_MAX);
  });

  it('is led to from its bare address, and from that of a run in a commit status', async () => {
    for (const [url, target] of [
      ['/dashboard', '/dashboard/'],
      ['/runs/0192f0c1', '/dashboard/runs/0192f0c1'],
      ['/runs/%2f%2fevil.example', '/dashboard/runs/%2F%2Fevil.example'],
    ] as const) {
      const { statusCode, headers } = await app.inject(url);
      expect([statusCode, headers.location]).toEqual([302, target]);
    }
  });

  it('says where it was not built what to do', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-dist-'));
    const bare = server();
    addDashboardRoutes(bare, folder);
    try {
      const answer = await bare.inject('/dashboard/');
      expect(answer.statusCode).toBe(503);
      expect(answer.json().message).toContain('npm start');
    } finally {
      await bare.close();
      rmSync(folder, { recursive: true });
    }
  });
});
