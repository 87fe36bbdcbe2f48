import { describe, expect, it } from 'vitest';
import { parseObjectAddress } from '../src/index.ts';

const s3 = { kind: 's3', bucket: 'bucket', prefix: '', endpoint: undefined, region: undefined };

describe('SERVICE_OBJECTS_URL', () => {
  it.each([
    ['nats', { kind: 'nats' }],
    ['nats:', { kind: 'nats' }],
    ['/var/lib/x', { kind: 'folder', folder: '/var/lib/x' }],
    ['./x', { kind: 'folder', folder: './x' }],
    ['file:/var/lib/x', { kind: 'folder', folder: '/var/lib/x' }],
    ['file:///var/lib/x', { kind: 'folder', folder: '/var/lib/x' }],
    ['s3://bucket', s3],
    ['s3://bucket/a/b?region=eu-west-1', { ...s3, prefix: 'a/b/', region: 'eu-west-1' }],
    [
      's3://bucket/a/?endpoint=http://127.0.0.1:9000',
      { ...s3, prefix: 'a/', endpoint: 'http://127.0.0.1:9000', region: 'us-east-1' },
    ],
  ])('%s is understood', (text, address) => {
    expect(parseObjectAddress(text)).toEqual(address);
  });

  it.each([
    ['file:', 'names no folder'],
    ['http://host/x', 'names no folder'],
    ['s3:', 'names no bucket'],
    ['s3://', 'names no bucket'],
    ['s3://B_cket', 'names no bucket'],
    ['s3://bucket:80', 'names no bucket'],
    ['s3://key:value@bucket', 'holds credentials'],
    ['s3://bucket/../x y', 'has a path'],
    ['s3://bucket//x', 'has a path'],
    ['s3://bucket?endpiont=http://x', "has 'endpiont' beside endpoint and region"],
    ['s3://bucket?endpoint=x', 'has an endpoint'],
    ['s3://bucket?endpoint=http://key:value@x', 'has an endpoint'],
  ])('%s is refused, without its text', (text, problem) => {
    const refused = parseObjectAddress(text);
    expect(refused).toEqual({ problem: expect.stringContaining(problem) });
    expect(JSON.stringify(refused)).not.toContain('value@');
  });
});
