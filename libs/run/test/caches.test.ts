import { describe, expect, it } from 'vitest';
import { cacheScopesOf } from '../src/index.ts';

const run = { tenant: 't', pipelineName: 'p' };

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

  it('is nowhere for an unsigned delivery', () => {
    const origin = { kind: 'webhook', repository: 'acme/shop', ref: 'refs/heads/main', trusted: false } as const;
    expect(cacheScopesOf({ ...run, origin })).toEqual({ write: null, read: [] });
  });
});
