import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** What a program that imports this file has loaded of Node itself, and of packages. */
function loadedBy(source: string): { readonly builtins: readonly string[]; readonly packages: readonly string[] } {
  const url = new URL(`../src/${source}`, import.meta.url).href;
  const program = `
    const { registerHooks } = await import('node:module');
    const packages = [];
    const load = (file, context, next) => {
      packages.push(/node_modules\\/(@[^/]+\\/[^/]+|[^/]+)/.exec(file)?.[1] ?? '');
      return next(file, context);
    };
    registerHooks({ load });
    await import(${JSON.stringify(url)});
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
    for (const name of ['xstate', 'execa']) expect(packages).toContain(name);
    expect(packages).not.toContain('fastify');
  });

  it('the API’s thread has what answers requests, no fetch before it asks somebody, and nothing that decides what runs do or starts programs', () => {
    const { builtins, packages } = loadedBy('api/start-api.ts');
    expect(packages).toContain('fastify');
    expect(builtins).not.toContain(FETCH);
    for (const name of ['xstate', 'execa']) expect(packages).not.toContain(name);
  });
});
