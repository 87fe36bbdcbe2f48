/** Stages that may do what their helper may: neither has any right, and nothing is started to take one away. */
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { ProcessExecutor } from '../src/process/executor.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

const NONE = '0'.repeat(16);
const FIELDS = ['Uid', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs'];
const [uid, gid] = [process.getuid?.() ?? -1, process.getgid?.() ?? -1];
const RIGHTLESS = {
  Uid: Array(4).fill(uid).join(' '),
  CapInh: NONE,
  CapPrm: NONE,
  CapEff: NONE,
  CapBnd: NONE,
  CapAmb: NONE,
  NoNewPrivs: '1',
};

function fieldsOf(status: string): Record<string, string> {
  const lines = status.split('\n').map((line) => line.split(':'));
  return Object.fromEntries(
    lines.flatMap(([name = '', value = '']) =>
      FIELDS.includes(name) ? [[name, value.trim().replaceAll(/\s+/g, ' ')]] : [],
    ),
  );
}

const hasNamespaces = spawnSync('unshare', ['--user', '--map-root-user', 'true']).status === 0;

it.runIf(hasNamespaces)(
  'a helper that shares its rights has none, its stages have none, and each is forked from it as it is',
  async () => {
    const executor = new ProcessExecutor({ isolations: ['user-namespace'], sharesRights: true, warn: () => {} });
    const outputOf = async (script: string): Promise<string> => {
      const sink = new RecordingSink();
      const commands = [{ script, bindings: {} }];
      const spec = { helperKey: 'key', commands, env: { OWN: 'of the stage' }, cwd: tmpdir(), timeoutMs: 60_000 };
      expect(await executor.start(spec, sink).ended).toEqual({ kind: 'exit', code: 0 });
      return sink.text();
    };
    try {
      expect(fieldsOf(await outputOf('cat /proc/self/status'))).toEqual(RIGHTLESS);
      expect(fieldsOf(await outputOf('cat /proc/1/status'))).toEqual(RIGHTLESS);
      expect(await outputOf('id -u; id -g')).toBe(`${uid}\n${gid}\n`);
      // A new program would have them there.
      const said =
        'read -r line </proc/self/environ || :; case $line in *OWN=*) echo new ;; *) echo forked ;; esac; echo $OWN';
      expect(await outputOf(said)).toBe('forked\nof the stage\n');
    } finally {
      await executor.close();
    }
  },
);
