/** Secrets, from `setSecret` to a stage that prints them in every form; then they are looked for wherever they must not be. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const CANARY = 'kanarie/4711+"x" geel';
const LINES = '-----BEGIN-----\nQm9vbS1yb29zLXZpcw\nd29ydGVsLXZ1dXI\n-----END-----\n';
const SET =
  'mutation ($name: String, $value: String, $pipeline: String, $repository: String) { setSecret(name: $name, value: $value, pipeline: $pipeline, repository: $repository) { name } }';
const EVERYTHING =
  'query ($id: String!) { run(id: $id) { id status stages { name status reason outputs { key value } attempts { number status } } } runEvents(id: $id) { type summary data } artifacts(run_id: $id) { stage key value } secrets { name lastUsedAt } }';

/** The seven encodings of the canary, each without what stands beside it. */
function encodings(value: string): Buffer[] {
  const base64At = (before: number): string => {
    const digits = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]).toString('base64');
    return digits.slice(Math.ceil((before * 8) / 6), Math.floor(((before + value.length) * 8) / 6));
  };
  return [
    value,
    base64At(0),
    base64At(1),
    base64At(2),
    Buffer.from(value).toString('base64url').replace(/.$/, ''),
    Buffer.from(value).toString('hex'),
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
  ].map((text) => Buffer.from(text));
}

const NEEDLES = [CANARY, ...LINES.trim().split('\n').slice(1, 3)].flatMap(encodings);

const isIn = (bytes: Buffer | string): boolean => NEEDLES.some((needle) => Buffer.from(bytes).includes(needle));

/** False of one that is being cleared away meanwhile. */
function holdsNeedle(path: string): boolean {
  try {
    return isIn(readFileSync(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** What a process was given, for all but those that a stage has started. */
function leakingProcesses(runId: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        const environ = readFileSync(`/proc/${pid}/environ`);
        return (
          isIn(readFileSync(`/proc/${pid}/cmdline`)) || (isIn(environ) && !environ.includes(`PENSTOCK_RUN_ID=${runId}`))
        );
      } catch {
        // It has ended, or is nobody's to look into.
        return false;
      }
    });
}

describe('secrets of a server', () => {
  const shared = temporaryFolder('penstock-secrets-');
  let server: RunningServer;

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SLOTS: '2' } });
    for (const [name, value] of [
      ['CANARY', CANARY],
      ['LINES', LINES],
    ]) {
      const { errors } = await server.graphql(SET, { name, value, pipeline: 'canary' });
      if (errors !== undefined) throw new Error(JSON.stringify(errors));
    }
  });
  afterAll(async () => {
    await server?.stop();
    shared.remove();
  });

  async function run(yaml: string): Promise<{
    readonly id: string;
    readonly status: string;
    readonly stages: readonly { readonly name: string; readonly status: string; readonly reason: string | null }[];
    readonly lines: readonly string[];
    readonly story: string;
  }> {
    const { data, errors } = await server.graphql<{
      triggerPipeline: {
        run: { id: string; status: string; stages: { name: string; status: string; reason: string }[] };
      };
    }>(TRIGGER, { yaml, waitSeconds: 60 });
    expect(errors).toBeUndefined();
    const story = await readStream(`${server.url}/pipeline/${data.triggerPipeline.run.id}/logs`, server.apiKey);
    const lines = story.events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => String(line));
    return { ...data.triggerPipeline.run, lines, story: JSON.stringify(story) };
  }

  it('a canary that a stage prints in seven encodings is found nowhere', { timeout: 120_000 }, async () => {
    const [printed, go] = [join(shared.path, 'printed'), join(shared.path, 'go')];
    const yaml = `pipeline: {name: canary}
stages:
  leak:
    secrets: {CANARY: CANARY, RENAMED: CANARY, KEY: {secret: LINES, file: true}, LINES: LINES}
    outputs: [leaked, kept]
    artifacts: kept/**
    run: |
      mkdir -p kept "kept/$(dirname "$CANARY")"
      echo x > "kept/$CANARY"; echo x > "kept/$(printf '%s' "$CANARY" | od -An -v -tx1 | tr -d ' \\n')"; echo x > kept/plain.txt
      printf '%s\\n' "$CANARY" "$RENAMED" "$LINES"
      printf '%s' "$CANARY" | base64 -w0; echo
      printf 'u%s' "$CANARY" | base64 -w0; echo
      printf 'u:%s' "$CANARY" | base64 -w0 >&2; echo >&2
      printf '%s' "$CANARY" | base64 -w0 | tr '+/' '-_'; echo
      printf '%s' "$CANARY" | od -An -v -tx1 | tr -d ' \\n'; echo
      printf '%s' "$CANARY" | sed 's#/#%2F#g; s/+/%2B/g; s/"/%22/g; s/ /%20/g'; echo
      printf '%s' "$CANARY" | sed 's/"/\\\\"/g'; echo
      cat "$KEY"; base64 "$KEY"
      stat -f -c 'file system of the key: %T' "$KEY"; stat -c 'mode of the key: %a' "$KEY"
      i=1; while [ $i -le \${#CANARY} ]; do printf '%s' "$(printf '%s' "$CANARY" | cut -c$i)"; i=$((i + 1)); done; echo
      echo born-in-the-stage >> "$SERVICE_MASK"
      echo "a value of its own: born-in-the-stage"
      { echo "leaked=the value is $CANARY"; echo kept=plain; } >> "$SERVICE_OUTPUT"
      echo "count=\${#CANARY}"
      touch ${printed}
      until [ -e ${go} ]; do sleep 0.05; done
  after:
    after: leak
    run: |
      echo "inherited: [\${CANARY-}] $(ls -A /dev/shm | grep -c '^[.]penstock')"
      echo "told: \${{ stages.leak.outputs.leaked }}"
`;
    const running = run(yaml);
    await until('the stage to have printed', () => existsSync(printed), 60_000);
    const { data } = await server.graphql<{ runs: { id: string }[] }>('{ runs(limit: 1) { id } }');
    const whileRunning = leakingProcesses(data.runs[0]?.id ?? '');
    // What the stage itself writes to its folders is its own affair.
    const own = join(server.dataDir, 'work');
    const filesWhileRunning = filesBelow(server.dataDir).filter((path) => !path.startsWith(own) && holdsNeedle(path));
    writeFileSync(go, '');
    const { id, status, lines, story } = await running;
    expect(status, story).toBe('SUCCESS');
    expect(whileRunning).toEqual([]);
    expect(filesWhileRunning).toEqual([]);
    // The stage had them, whole.
    expect(lines).toContain(`count=${CANARY.length}`);
    // Of every form what is left is what the value has no part in.
    expect(lines.filter((line) => line.includes('***')).length).toBeGreaterThan(12);
    expect(lines).toContain('a value of its own: ***');
    expect(lines).toContain('mode of the key: 600');
    expect(lines.join('\n')).toMatch(/file system of the key: (?:tmpfs|ramfs)/);
    expect(lines).toContain('2 files are not kept: their names hold secrets');
    expect(lines).toContain('kept 1 file (2 bytes)');
    expect(lines).toContain('inherited: [] 0');
    expect(lines).toContain('told: the value is ***');
    const shown = JSON.stringify(await server.graphql(EVERYTHING, { id }));
    expect(shown).toContain('the value is ***');
    expect(shown).toContain('kept/plain.txt');
    expect(shown).toMatch(/"name":"CANARY","lastUsedAt":"2\d{3}-/);
    expect({
      events: isIn(story),
      graphql: isIn(shown),
      serviceLog: isIn(server.output()),
      processes: leakingProcesses(id),
    }).toEqual({ events: false, graphql: false, serviceLog: false, processes: [] });
    expect(lines.filter((line) => isIn(line))).toEqual([]);
    const files = filesBelow(server.dataDir);
    expect(files.some((path) => path.includes('store.sqlite'))).toBe(true);
    expect(files.filter((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0).length).toBeGreaterThan(
      5,
    );
    expect(files.filter(holdsNeedle)).toEqual([]);
  });

  it('a stage that names one that is missing, or not for it, fails before anything starts and says which', async () => {
    await server.graphql(SET, { name: 'ELSEWHERE', value: 'of-a-repository', repository: 'git_host_a/acme/shop' });
    const { status, stages, lines } = await run(`pipeline: {name: canary}
stages:
  missing: {secrets: [CANARY, NOT_THERE, ELSEWHERE], run: echo started, retry: 3}
`);
    expect(status).toBe('FAILED');
    expect(stages).toEqual([{ name: 'missing', status: 'FAILED', reason: 'secret' }]);
    expect(lines).toEqual([
      'the stage cannot start: it is not given the secret NOT_THERE: there is none for runs without a repository',
      'the stage cannot start: it is not given the secret ELSEWHERE: there is none for runs without a repository',
    ]);
    const other = await run('pipeline: {name: other}\nstages:\n  a: {secrets: CANARY, run: echo started}\n');
    expect(other.stages).toEqual([{ name: 'a', status: 'FAILED', reason: 'secret' }]);
  });
});
