import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** What a program that imports this file has loaded of Node itself, and of packages in the older form of modules. */
function loadedBy(source: string): { readonly builtins: readonly string[]; readonly packages: readonly string[] } {
  const url = new URL(`../src/${source}`, import.meta.url).href;
  const program = `
    await import(${JSON.stringify(url)});
    const { default: Module } = await import('node:module');
    const packages = Object.keys(Module._cache).map((file) => /node_modules\\/(@[^/]+\\/[^/]+|[^/]+)/.exec(file)?.[1] ?? '');
    console.log(JSON.stringify({ builtins: process.moduleLoadList, packages: [...new Set(packages)] }));
    process.exit();
  `;
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', program], { cwd, encoding: 'utf8' }),
  );
}

describe('what serve loads', () => {
  const FETCH = 'NativeModule internal/deps/undici/undici';

  it('the engine’s thread has nothing that answers requests, and no fetch', () => {
    const { builtins, packages } = loadedBy('run-serve.ts');
    expect(builtins).not.toContain(FETCH);
    expect(packages).toContain('pino');
    expect(packages).not.toContain('fastify');
  });

  it('the API’s thread has what answers requests, and no fetch before it asks somebody', () => {
    const { builtins, packages } = loadedBy('api/start-api.ts');
    expect(packages).toContain('fastify');
    expect(builtins).not.toContain(FETCH);
  });
});
