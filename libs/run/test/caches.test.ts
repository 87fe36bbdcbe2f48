import { describe, expect, it } from 'vitest';
import { cacheScopesOf } from '../src/index.ts';

const run = { id: 'r1', tenant: 't', pipelineName: 'p' };

describe('where a run looks for caches, and writes them', () => {
  it('follows from its tenant, its repository and its ref', () => {
    const origin = { kind: 'webhook', provider: 'host', repository: 'acme/shop', ref: 'refs/heads/main' } as const;
    const scope = { tenant: 't', repository: 'host/acme/shop', pipeline: '', ref: 'refs/heads/main' };
    expect(cacheScopesOf({ ...run, origin })).toEqual({ write: scope, read: [scope] });
  });

  it('follows from the name of the pipeline where there is no repository', () => {
    const scope = { tenant: 't', repository: '', pipeline: 'p', ref: '' };
    expect(cacheScopesOf({ ...run, origin: { kind: 'api' } })).toEqual({ write: scope, read: [scope] });
  });

  it('is for a pull request its own, and then the branch that it would go into', () => {
    const at = (ref: string): object => ({ tenant: 't', repository: 'host/acme/shop', pipeline: '', ref });
    const origin = { kind: 'webhook', provider: 'host', repository: 'acme/shop', ref: 'refs/pull/7/head' } as const;
    const pullRequest = { number: 7, branch: 'main', fork: false };
    expect(cacheScopesOf({ ...run, origin: { ...origin, pullRequest } })).toEqual({
      write: at('pull/7'),
      read: [at('pull/7'), at('refs/heads/main')],
    });
    const forked = { ...origin, pullRequest: { ...pullRequest, fork: true }, trusted: false };
    expect(cacheScopesOf({ ...run, origin: forked })).toEqual({
      write: at('pull/7/untrusted'),
      read: [at('pull/7/untrusted'), at('refs/heads/main')],
    });
    const unsigned = { ...origin, pullRequest, trusted: false };
    expect(cacheScopesOf({ ...run, origin: unsigned })).toEqual({ write: null, read: [] });
  });

  it('ends with the default branch, which only its own runs write', () => {
    const at = (ref: string): object => ({ tenant: 't', repository: 'host/acme/shop', pipeline: '', ref });
    const origin = { kind: 'webhook', provider: 'host', repository: 'acme/shop', defaultBranch: 'main' } as const;
    const readAt = (more: object): unknown => cacheScopesOf({ ...run, origin: { ...origin, ...more } });
    expect(readAt({ ref: 'refs/heads/topic' })).toEqual({
      write: at('refs/heads/topic'),
      read: [at('refs/heads/topic'), at('refs/heads/main')],
    });
    expect(readAt({ ref: 'refs/heads/main' })).toEqual({ write: at('refs/heads/main'), read: [at('refs/heads/main')] });
    const pullRequest = { number: 7, branch: 'release', fork: false };
    expect(readAt({ ref: 'refs/pull/7/head', pullRequest })).toEqual({
      write: at('pull/7'),
      read: [at('pull/7'), at('refs/heads/release'), at('refs/heads/main')],
    });
    expect(readAt({ ref: 'refs/heads/topic', trusted: false })).toEqual({ write: null, read: [] });
  });

  it('is its own for a run with another file than its repository’s, which finds what others have left (CACHE-5)', () => {
    const at = (ref: string): object => ({ tenant: 't', repository: 'host/acme/shop', pipeline: '', ref });
    const origin = { kind: 'webhook', provider: 'host', repository: 'acme/shop', ref: 'refs/heads/main' } as const;
    const lineage = { parent: 'r0', version: 9, root: 'r0', actors: [] };
    expect(cacheScopesOf({ ...run, origin, lineage }).write).toEqual(at('refs/heads/main'));
    expect(cacheScopesOf({ ...run, origin, lineage: { ...lineage, edited: true } })).toEqual({
      write: at('rerun/r1'),
      read: [at('rerun/r1'), at('refs/heads/main')],
    });
  });

  it('is nowhere for an unsigned delivery', () => {
    const origin = { kind: 'webhook', repository: 'acme/shop', ref: 'refs/heads/main', trusted: false } as const;
    expect(cacheScopesOf({ ...run, origin })).toEqual({ write: null, read: [] });
  });
});
