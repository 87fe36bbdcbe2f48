/** What `secrets` of a stage means: names and variables, never a value. */
import { describe, expect, it } from 'vitest';
import { diagnosticLine, parseManifest, parsePipeline, type StageDefinition } from '../src/index.ts';

function stagesOf(
  stages: string,
  extensions: { readonly uses: string; readonly manifest: string }[] = [],
): readonly StageDefinition[] {
  const result = parsePipeline(`pipeline: {name: p}\nstages:\n${stages}`, {
    extensions: extensions.map((each) => ({ ...each, id: 'build/x', version: '1.0.0', hash: '0'.repeat(64) })),
  });
  if (!result.ok) throw new Error(result.diagnostics.map(diagnosticLine).join('\n'));
  return result.definition.stages;
}

describe('secrets', () => {
  it('are variables of the same name, of another, or with the path of a file', () => {
    const [list, single, map, none] = stagesOf(`
  list: {run: x, secrets: [NPM_TOKEN, DEPLOY_KEY]}
  single: {run: x, secrets: NPM_TOKEN}
  map: {run: x, secrets: {npm_token: NPM_TOKEN, key: {secret: DEPLOY_KEY, file: true}, plain: {secret: A_B}}}
  none: {run: x}`);
    expect(list?.secrets).toEqual([
      { variable: 'NPM_TOKEN', name: 'NPM_TOKEN', file: false },
      { variable: 'DEPLOY_KEY', name: 'DEPLOY_KEY', file: false },
    ]);
    expect(single?.secrets).toEqual([{ variable: 'NPM_TOKEN', name: 'NPM_TOKEN', file: false }]);
    expect(map?.secrets).toEqual([
      { variable: 'npm_token', name: 'NPM_TOKEN', file: false },
      { variable: 'key', name: 'DEPLOY_KEY', file: true },
      { variable: 'plain', name: 'A_B', file: false },
    ]);
    expect(none).not.toHaveProperty('secrets');
  });

  it('are at most twenty', () => {
    const names = Array.from({ length: 21 }, (_, index) => `S${index}`);
    expect(stagesOf(`  a: {run: x, secrets: [${names.slice(1).join(', ')}]}`)[0]?.secrets).toHaveLength(20);
    expect(() => stagesOf(`  a: {run: x, secrets: [${names.join(', ')}]}`)).toThrow('20');
    expect(() => stagesOf(`  a: {run: x, secrets: {${names.map((name) => `${name}: ${name}`).join(', ')}}}`)).toThrow(
      '20',
    );
  });

  it('of a stage that uses an extension reach what the extension runs, in each of its stages', () => {
    const about = 'id: build/x\nversion: 1.0.0\ndescription: x\n';
    const command = { uses: 'build/x@1', manifest: `${about}run: x\n` };
    expect(stagesOf('  a: {uses: build/x@1, secrets: A}', [command])[0]?.secrets).toHaveLength(1);
    const level = { uses: 'build/x@1', manifest: `${about}stages: {one: {run: x}, two: {run: x, after: one}}\n` };
    const stages = stagesOf('  a: {uses: build/x@1, secrets: A}', [level]);
    expect(stages.map(({ name, secrets }) => [name, secrets?.length])).toEqual([
      ['a/one', 1],
      ['a/two', 1],
    ]);
  });

  it('are not for an extension to name: who uses it would give what it does not know of', () => {
    const manifest = 'id: build/x\nversion: 1.0.0\ndescription: x\nstages:\n  one: {run: x, secrets: NPM_TOKEN}\n';
    const result = parseManifest(manifest);
    expect(result.ok ? [] : result.diagnostics.map(diagnosticLine)).toEqual([
      expect.stringContaining('an extension names no secrets'),
    ]);
  });
});
