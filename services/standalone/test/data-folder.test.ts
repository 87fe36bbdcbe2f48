import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeDataFolder } from '../src/data-folder.ts';
import { keptSecret } from '../src/keys.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-data-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the data folder', () => {
  it("is made with those above it, its owner's alone, and taken as it is where it is there", () => {
    const path = join(folder, 'a', 'b');
    makeDataFolder(path);
    makeDataFolder(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('that holds something else keeps its rights: nobody else is shut out of a shared folder', () => {
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, 'of somebody else'), '');
    makeDataFolder(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o755);
  });

  it('that cannot be made is refused with its name, and nothing hangs', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(() => makeDataFolder(join(folder, 'file'))).toThrow(
      `${join(folder, 'file')} cannot be made (a file is in its place`,
    );
    expect(() => makeDataFolder(join(folder, 'file', 'below'))).toThrow(
      /below cannot be made \(a file is in its place/u,
    );
    expect(() => keptSecret(join(folder, 'file', 'api-key'))).toThrow(/cannot be made \(a file is in its place/u);
  });

  it.runIf(existsSync('/proc/self'))('in a file system that takes no folders is refused', () => {
    expect(() => makeDataFolder('/proc/penstock/data')).toThrow(/cannot be made \(no folder can be made there\)/u);
    expect(() => keptSecret('/proc/penstock/api-key')).toThrow(/cannot be made \(no folder can be made there\)/u);
  });
});
