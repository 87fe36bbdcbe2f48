/** Files that are triggered again and again are read once. */
import { expect, it } from 'vitest';
import { parsePipeline, type ParseResult, type ResolvedExtension } from '@penstock/pipeline';
import type { Caller } from '@penstock/identity';
import { BadUserInput } from '@penstock/errors';
import { CheckedFiles } from '../src/runs/checked-files.ts';

const CALLER = { kind: 'api-key' } as Caller;
const TENANT = 'service';
const PLAIN = 'pipeline: { name: plain }\nstages: { a: { run: "grep \\\\d uses" } }';
const USING = 'pipeline: { name: using }\nstages: { a: { uses: build/node@^2 } }';

function extension(version: string): ResolvedExtension {
  return {
    uses: 'build/node@^2',
    id: 'build/node',
    version,
    hash: 'a'.repeat(64),
    manifest: `id: build/node\nversion: ${version}\ndescription: Builds\nrun: npm ci\n`,
  };
}

/** What was asked of the registry, and read, one after the other. */
function makeFiles(given: () => readonly ResolvedExtension[] = () => []) {
  const resolved: string[] = [];
  const read: string[] = [];
  const told: ParseResult[] = [];
  const files = new CheckedFiles({
    uses: {
      resolve: async (_caller, yaml) => {
        resolved.push(yaml);
        return given();
      },
    },
    onRead: (_text, result) => told.push(result),
    parse: async (yaml, { extensions }) => {
      read.push(yaml);
      return parsePipeline(yaml, { extensions });
    },
  });
  return { files, resolved, read, told, check: (yaml: string) => files.check(CALLER, yaml, undefined, TENANT) };
}

it('CHECKEDFILES-1: a file without extensions is read once, and looked at for what it uses once', async () => {
  const { check, resolved, read, told } = makeFiles();
  const first = await check(PLAIN);
  expect(first).toEqual({ file: { name: 'plain' }, extensions: [] });
  expect(await check(PLAIN)).toEqual(first);
  expect({ resolved, read }).toEqual({ resolved: [PLAIN], read: [PLAIN] });
  expect(told).toHaveLength(1);
});

it('CHECKEDFILES-2: what a file uses is resolved at each trigger, and read once for each answer', async () => {
  let version = '2.1.0';
  const { check, resolved, read, told } = makeFiles(() => [extension(version)]);
  await check(USING);
  expect(await check(USING)).toEqual({ file: { name: 'using' }, extensions: [extension('2.1.0')] });
  expect({ resolved, read }).toEqual({ resolved: [USING, USING], read: [USING] });
  version = '2.2.0';
  expect((await check(USING)).extensions).toEqual([extension('2.2.0')]);
  expect(read).toHaveLength(2);
  expect(told).toEqual([]);
});

it('a file that is bad is read each time, and never taken for a good one', async () => {
  const { check, read } = makeFiles();
  await expect(check(USING)).rejects.toThrow(BadUserInput);
  await expect(check(USING)).rejects.toThrow(BadUserInput);
  expect(read).toEqual([USING, USING]);
});

it('a text that spells out another one with its extensions is a text of its own', async () => {
  const given = [extension('2.1.0')];
  const { files, check } = makeFiles();
  await files.checkResolved(USING, given, TENANT);
  for (const between of ['\0', ' ', '\n'])
    await expect(check(`${USING}${between}${JSON.stringify(given)}`)).rejects.toThrow(BadUserInput);
});

it('of more files than are remembered those go that were not triggered for the longest time', async () => {
  const { check, read } = makeFiles();
  await check(PLAIN);
  const other = (index: number): string => `pipeline: { name: p${index} }\nstages: { a: { run: "true" } }`;
  for (let index = 0; index < 999; index++) await check(other(index));
  await check(PLAIN);
  await check(other(999));
  read.length = 0;
  await check(PLAIN);
  expect(read).toEqual([]);
  await check(other(0));
  expect(read).toEqual([other(0)]);
});

it('one with so much to remember that others would have no room is read each time', async () => {
  const options = Array.from({ length: 90 }, (_, index) => `option-${index}-${'x'.repeat(100)}`).join(', ');
  const large = `pipeline: { name: large }\ninputs: { which: { type: choice, options: [${options}] } }\nstages: { a: { run: "true" } }`;
  const { check, read } = makeFiles();
  await check(large);
  await check(large);
  expect(read).toEqual([large, large]);
});
