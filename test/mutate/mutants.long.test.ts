import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tryMutants, type Tried } from './session.ts';

/** Each of them is a run of vitest: some seconds on an idle machine, and many beside the load of others. */
const PATIENT_MS = 300_000;
const root = join(import.meta.dirname, '..', '..');

describe('a mutant', () => {
  const id = { rule: 'P9', file: 'libs/run/src/run-id.ts', noticedBy: [{ tests: 'libs/run/test/run-id.test.ts' }] };
  const inId = 'return Number.parseInt(runId.slice(0, 8) + runId.slice(9, 13), 16);';

  it(
    'that a test notices is killed, one that changes nothing lives, and one whose text is gone is an error',
    async () => {
      const tried: Tried[] = [];
      await tryMutants({
        root,
        jobs: 1,
        tried: (each) => tried.push(each),
        mutants: [
          { ...id, breaks: 'reads no time in an id', find: inId, replace: 'return 0;' },
          { ...id, breaks: 'changes nothing', find: inId, replace: `${inId} ` },
          { ...id, breaks: 'stands nowhere', find: 'a text that is not there', replace: '' },
          {
            ...id,
            breaks: 'is looked for by no test',
            find: inId,
            replace: '',
            noticedBy: [{ ...id.noticedBy[0], tests: id.noticedBy[0]?.tests ?? '', titles: ['no such title'] }],
          },
        ],
      });
      expect(tried.map(({ fate }) => fate.kind)).toEqual(['killed', 'lived', 'error', 'error']);
      expect(readFileSync(join(root, id.file), 'utf8')).toContain(inId);
    },
    PATIENT_MS,
  );
});
