/** What the executors of this machine promise of files that its owner replaces while the stage runs, as tests. */
import { chownSync, existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Executor, StageProcess, StageSpec } from '../src/contract/port.ts';
import { RecordingSink, type ExecutorSuiteOptions } from '../src/testing/executor-suite.ts';

const CHARACTERS = 4_000;
const REPLACED_TIMES = 300;
/** Reads on until the last content is there: `torn` where it has ever read something else than one of them. */
const READS = `
  stat -c '%a' "$TOKEN"; stat -f -c %T "$TOKEN"; echo up
  while :; do
    text=$(cat "$TOKEN"); [ \${#text} = ${CHARACTERS} ] || { echo "torn: \${#text}"; exit 1; }
    case $text in z*) break;; esac
  done
  echo "last \${#text}"
  echo "$TOKEN"
`;
const textOf = (letter: string): string => letter.repeat(CHARACTERS);

export function runRenewedSuite(
  name: string,
  { create, spec: always = {} }: Pick<ExecutorSuiteOptions, 'create' | 'spec'>,
): void {
  describe(`${name}: files that are replaced`, () => {
    let executor: Executor;
    let folder: string;
    beforeAll(() => {
      folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-renewed-')));
      executor = create(folder);
      if (always.user !== undefined) chownSync(folder, always.user.uid, always.user.gid);
    });
    afterAll(async () => {
      await executor.close();
      rmSync(folder, { recursive: true, force: true });
    });

    function start(
      script: string,
      sink: RecordingSink,
      renewedFiles: StageSpec['renewedFiles'] = [],
      helperKey = 'key',
    ): StageProcess {
      const commands = [{ script, bindings: {} }];
      const spec = {
        helperKey,
        commands,
        env: {},
        cwd: folder,
        folders: [folder],
        timeoutMs: 120_000,
        graceMs: 300,
      };
      return executor.start({ ...spec, ...always, renewedFiles }, sink);
    }

    it('lie in memory, are the stage’s alone to read, are never read in part, and go with it', async () => {
      const sink = new RecordingSink();
      const stage = start(READS, sink, [
        { variable: 'TOKEN', content: textOf('a') },
        { variable: 'OTHER', content: 'kept' },
      ]);
      await sink.until('up\n');
      for (let times = 0; times < REPLACED_TIMES; times += 1) {
        stage.replaceFile?.('TOKEN', textOf(times % 2 === 0 ? 'b' : 'a'));
        await new Promise((resolve) => setImmediate(resolve));
      }
      stage.replaceFile?.('TOKEN', textOf('z'));
      expect(await stage.ended, sink.text() + sink.text('stderr')).toEqual({ kind: 'exit', code: 0 });
      const lines = sink.text().trim().split('\n');
      const path = lines.at(-1) ?? '';
      expect(lines.slice(0, -1)).toEqual(['600', 'tmpfs', 'up', `last ${CHARACTERS}`]);
      expect(sink.text('system')).toBe('');
      expect(existsSync(path)).toBe(false);
      const after = new RecordingSink();
      await start(`ls -d "${path}" 2>/dev/null || true; echo "[\${TOKEN-}]"`, after).ended;
      expect(after.text()).toBe('[]\n');
      // It has ended.
      expect(() => stage.replaceFile?.('TOKEN', 'late')).not.toThrow();
      expect(existsSync(path)).toBe(false);
    });

    it('are there as they were replaced last, where that was before the stage began', async () => {
      const sink = new RecordingSink();
      // No helper of its key idles: it does not begin in this turn.
      const stage = start('cat "$TOKEN"', sink, [{ variable: 'TOKEN', content: 'first' }], 'another key');
      stage.replaceFile?.('TOKEN', 'second');
      expect([await stage.ended, sink.text().trim()]).toEqual([{ kind: 'exit', code: 0 }, 'second']);
    });

    it('of a stage that is killed are gone as well', async () => {
      const sink = new RecordingSink();
      const stage = start('echo "$TOKEN"; trap "" TERM; while :; do sleep 1; done', sink, [
        { variable: 'TOKEN', content: 'first' },
      ]);
      await sink.until('\n');
      const path = sink.text().trim();
      stage.stop('cancelled');
      expect(await stage.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
      expect(existsSync(path)).toBe(false);
    });
  });
}
