import { describe, expect, it } from 'vitest';
import { formatLock, generateSigningKeys, isSignedBy, parseLock, signPackage } from '../src/index.ts';
import { publicKeyOf } from '../src/signatures.ts';

const HASH = 'ab'.repeat(32);

describe('.pipeline.lock', () => {
  const entries = [
    { uses: 'test/junit@^1', id: 'test/junit', version: '1.0.0', hash: HASH },
    { uses: 'build/node@^1', id: 'build/node', version: '1.2.0', hash: 'c'.repeat(64) },
  ];

  it('is the same text for the same lock, and is read as it was written', () => {
    expect(formatLock(entries)).toBe(formatLock(entries.toReversed()));
    expect(parseLock(formatLock(entries))).toEqual(entries.toReversed());
    expect(formatLock([])).toBe('{\n  "lockVersion": 1,\n  "extensions": []\n}\n');
  });

  it.each([
    ['{', 'it is not JSON'],
    ['[]', "it has no list 'extensions'"],
    ['{"lockVersion": 2, "extensions": []}', "its 'lockVersion' is not 1"],
    ['{"lockVersion": 1, "extensions": [{"uses": "build/node@^1"}]}', "an extension in it has no 'id'"],
    [
      `{"lockVersion": 1, "extensions": [{"uses": "build/node@^1", "id": "build/node", "version": "1.0.0", "hash": "../../x"}]}`,
      'is not as penstock lock writes it',
    ],
  ])('refuses %s', (text, message) => {
    expect(() => parseLock(text)).toThrow(message);
  });
});

describe('signatures', () => {
  it('hold for the hash and the key that they were made with, and for no others', () => {
    const [mine, other] = [generateSigningKeys(), generateSigningKeys()];
    const signature = signPackage(HASH, mine.privateKey);
    expect(publicKeyOf(mine.privateKey)).toBe(mine.publicKey);
    expect([
      isSignedBy(HASH, signature, mine.publicKey),
      isSignedBy('0'.repeat(64), signature, mine.publicKey),
      isSignedBy(HASH, signature, other.publicKey),
      isSignedBy(HASH, 'AAAA', mine.publicKey),
      isSignedBy(HASH, signature, 'AAAA'),
    ]).toEqual([true, false, false, false, false]);
  });

  it('what is no key is told without showing it', () => {
    expect(() => signPackage(HASH, 'secret words')).toThrow(
      'the file holds no Ed25519 private key in PEM, such as penstock extension keygen writes',
    );
  });
});
