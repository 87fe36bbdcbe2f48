import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { removeTree } from '@penstock/executor';
import { keepGivenFiles } from '../src/pod/given-files.ts';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'penstock-given-'));
  onTestFinished(() => removeTree(path));
  return path;
}

it('the outputs and the stages of a stage in a Pod stand where it would have written them', () => {
  const at = folder();
  const [output, stages] = [join(at, 'output'), join(at, 'stages')];
  const env = { SERVICE_OUTPUT: output, SERVICE_STAGES: stages };
  keepGivenFiles({ env, folders: [at] }, Buffer.from('a=1\n\0b: {run: x}\n'));
  expect([output, stages].map((path) => readFileSync(path, 'utf8'))).toEqual(['a=1\n', 'b: {run: x}\n']);
});

it('a guard that knows of no stages gives outputs alone, and so does a stage that adds none', () => {
  const at = folder();
  const [output, stages] = [join(at, 'output'), join(at, 'stages')];
  keepGivenFiles({ env: { SERVICE_OUTPUT: output, SERVICE_STAGES: stages }, folders: [at] }, Buffer.from('a=1\n'));
  keepGivenFiles({ env: { SERVICE_OUTPUT: `${output}-2` }, folders: [at] }, Buffer.from('a=\0'));
  expect(readFileSync(output, 'utf8')).toBe('a=1\n');
  expect(existsSync(stages)).toBe(false);
  expect(readFileSync(`${output}-2`, 'utf8')).toBe('a=\0');
});

it('what lies outside of the folders of the stage is not written', () => {
  const at = folder();
  const env = { SERVICE_OUTPUT: join(at, 'output'), SERVICE_STAGES: join(at, 'stages') };
  keepGivenFiles({ env, folders: ['/elsewhere'] }, Buffer.from('a=1\0b'));
  expect(existsSync(join(at, 'stages'))).toBe(false);
});
