/** Files that stages keep, on a server as a user has it: collected, listed, downloaded, refused. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { trigger, type RunningServer } from '../support/server.ts';
import { startSmallServer, type EndedRun, type SmallServer } from '../support/small-server.ts';
import { readStream } from '../support/sse.ts';

interface Listed {
  readonly stage: string;
  readonly key: string;
  readonly value: string;
  readonly sizeBytes: string | null;
  readonly sha256: string | null;
  readonly expiresAt: string | null;
}

const LIST = 'query ($id: String!) { artifacts(run_id: $id) { stage key value sizeBytes sha256 expiresAt } }';
const CLI = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
let small: SmallServer;
let server: RunningServer;

beforeAll(async () => {
  small = await startSmallServer();
  ({ server } = small);
}, 90_000);
afterAll(() => small.stop());

async function list(id: string): Promise<readonly Listed[]> {
  const { data } = await server.graphql<{ artifacts: readonly Listed[] }>(LIST, { id });
  return data.artifacts;
}

async function download(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${server.apiKey}`, ...headers } });
}

const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

describe('artifacts', { timeout: 120_000 }, () => {
  it('of stages that another stage has added are found by their names, in a run that knows when they came', async () => {
    const { id, status, stages } = await small.run(`pipeline: {name: adding}
env: {WHO: world}
stages:
  plan:
    generates: true
    run: |
      cat >"$SERVICE_STAGES" <<'END'
      test:
        matrix: {n: [1, 2]}
        artifacts: [out.txt]
        workspace: fresh
        run: 'printf "$WHO" > out.txt'
      deep:
        after: test
        generates: true
        run: 'echo "last: {run: echo so deep}" >"$SERVICE_STAGES"'
      END
  publish:
    after: plan
    run: echo published
`);
    expect(status).toBe('SUCCESS');
    expect(stages.map(({ name, status: each }) => `${name} ${each}`)).toEqual([
      ...['plan SUCCESS', 'publish SUCCESS', 'plan/test (n=1) SUCCESS', 'plan/test (n=2) SUCCESS'],
      ...['plan/deep SUCCESS', 'plan/deep/last SUCCESS'],
    ]);
    const files = (await list(id)).filter(({ key }) => key === 'out.txt');
    expect(files.map(({ value }) => value)).toEqual(
      [1, 2].map((n) => `/pipeline/${id}/artifacts/plan%2Ftest%20(n%3D${n})/out.txt`),
    );
    expect(await (await download(files[1]?.value ?? '')).text()).toBe('world');
    const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
    expect(events.filter(({ event }) => event === 'stages_added').map(({ data }) => data)).toMatchObject([
      { stage: 'plan', stages: ['plan/test (n=1)', 'plan/test (n=2)', 'plan/deep'] },
      { stage: 'plan/deep', stages: ['plan/deep/last'] },
    ]);
    const started = events.filter(({ event }) => event === 'stage_started').map(({ data: { stage } }) => stage);
    expect(started.at(-1)).toBe('publish');
    const { data: told } = await server.graphql<{ runEvents: readonly { version: number; type: string }[] }>(
      'query ($id: String!) { runEvents(id: $id) { version type } }',
      { id },
    );
    const at = told.runEvents.find(({ type }) => type === 'stages_added')?.version ?? 0;
    const { data } = await server.graphql<{ before: EndedRun; after: EndedRun }>(
      `query ($id: String!, $before: Int!, $after: Int!) {
        before: run(id: $id, atVersion: $before) { stages { name } }
        after: run(id: $id, atVersion: $after) { stages { name } }
      }`,
      { id, before: at - 1, after: at },
    );
    expect([data.before, data.after].map((view) => view.stages.length)).toEqual([2, 5]);
  });

  it.each([300_000, 900_000])('of %i bytes in a file reach the next stage whole', async (size) => {
    const { id, status } = await small.run(`pipeline: {name: handed-on}
stages:
  build:
    artifacts: [large]
    run: head -c ${size} /dev/zero >large
  test:
    after: build
    workspace: fresh
    run: wc -c <large
`);
    expect(status, (await small.linesOf(id)).join('\n')).toBe('SUCCESS');
    expect(await small.linesOf(id)).toContain(String(size));
  });

  it('of stages that a rerun takes over are there for all that come after them, whichever of those makes the folder', async () => {
    const parent = await small.run(`pipeline: {name: two-sides}
inputs: {fixed: {type: boolean, default: false}}
stages:
  api: {run: echo the api > api.txt, artifacts: api.txt}
  web: {run: echo the web > web.txt, artifacts: web.txt}
  lint: {run: test "$INPUT_FIXED" = true}
  use-api: {after: [api, lint], run: cat api.txt}
  use-web: {after: [web, lint], run: cat web.txt}
`);
    expect(parent.status).toBe('FAILED');
    const { data } = await server.graphql<{ rerunPipeline: { run: EndedRun } }>(
      `mutation ($id: String!) { rerunPipeline(id: $id, onlyFailed: true, waitSeconds: 60, inputs: [{key: "fixed", value: "true"}])
        { run { id status stages { name status reason } } } }`,
      { id: parent.id },
    );
    const { id, status } = data.rerunPipeline.run;
    const lines = await small.linesOf(id);
    expect(status, lines.join('\n')).toBe('SUCCESS');
    expect(lines).toEqual(expect.arrayContaining(['the api', 'the web']));
  });

  it('of a stage with a folder of its own are there for those that share one, which was there before', async () => {
    const { id, status } = await small.run(`pipeline: {name: fresh-to-shared}
stages:
  first: {run: mkdir dist && echo old > dist/app && echo other > dist/other}
  build: {after: first, workspace: fresh, run: mkdir dist && echo new > dist/app, artifacts: dist/**}
  change: {after: build, run: cat dist/* && echo changed > dist/app}
  last: {after: [build, change], run: cat dist/app}
`);
    const lines = await small.linesOf(id);
    expect(status, lines.join('\n')).toBe('SUCCESS');
    expect(lines.filter((line) => !line.startsWith('kept'))).toEqual(['new', 'other', 'changed']);
  });

  it('are none of a stage that adds stages which are refused, and its log says why', async () => {
    const { id, status, stages } = await small.run(`pipeline: {name: adding-badly}
stages:
  plan:
    generates: true
    artifacts: [kept]
    run: 'echo > kept; echo "a: {after: nobody, run: x, secrets: [TOKEN]}" >"$SERVICE_STAGES"'
  publish: {after: plan, run: x}
`);
    expect([status, ...stages.map(({ status: each, reason }) => `${each} ${reason}`)]).toEqual([
      ...['FAILED', 'FAILED pipeline_file', 'SKIPPED dependency'],
    ]);
    const lines = await small.linesOf(id);
    expect(lines.join('\n')).toContain("comes after 'nobody', which is not a stage");
    expect(lines.join('\n')).toContain("the secret 'TOKEN' is not among those that 'plan' may hand on");
    expect(await list(id)).toEqual([]);
  });

  it('a SUCCESS has its files: listed, downloaded whole and in part, and as one archive', async () => {
    const { id, status } = await small.run(`pipeline: {name: kept}
stages:
  build all/one:
    run: |
      mkdir -p dist/deep
      printf hello > dist/a.txt
      printf '#!/bin/sh\\n' > dist/deep/tool
      chmod +x dist/deep/tool
      head -c 1500000 /dev/zero | tr '\\0' x > 'dist/a b$(x).bin'
      printf map > dist/a.map
      echo version=1 >> "$SERVICE_OUTPUT"
    outputs: [version]
    artifacts: {paths: [dist/**, '!dist/*.map'], expire: 7d}
`);
    expect(status).toBe('SUCCESS');
    const artifacts = await list(id);
    expect(artifacts.map(({ key }) => key)).toEqual(['version', 'dist/a b$(x).bin', 'dist/a.txt', 'dist/deep/tool']);
    expect(artifacts[0]).toEqual({
      ...{ stage: 'build all/one', key: 'version', value: '1' },
      ...{ sizeBytes: null, sha256: null, expiresAt: null },
    });
    const text = artifacts[2] as Listed;
    expect(text).toMatchObject({ sizeBytes: '5', sha256: sha256('hello') });
    expect(text.value).toBe(`/pipeline/${id}/artifacts/build%20all%2Fone/dist/a.txt`);
    const days = (Date.parse(text.expiresAt ?? '') - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(6.9);
    expect(days).toBeLessThan(7.1);

    const whole = await download(text.value);
    expect([whole.status, await whole.text()]).toEqual([200, 'hello']);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      etag: `"${sha256('hello')}"`,
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="a.txt"; filename*=UTF-8''a.txt`,
      'x-content-type-options': 'nosniff',
      'content-length': '5',
    });
    expect((await download(text.value, { 'if-none-match': `"${sha256('hello')}"` })).status).toBe(304);
    const large = (artifacts[1] as Listed).value;
    const part = await download(large, { range: 'bytes=700000-1299999' });
    expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 700000-1299999/1500000']);
    expect(Buffer.from(await part.arrayBuffer()).equals(Buffer.alloc(600_000, 'x'))).toBe(true);
    expect((await download(large, { range: 'bytes=1500000-' })).status).toBe(416);
    expect(sha256(Buffer.from(await (await download(large)).arrayBuffer()))).toBe((artifacts[1] as Listed).sha256);

    const archive = await download(`/pipeline/${id}/artifacts/build%20all%2Fone`);
    expect(archive.headers.get('content-type')).toBe('application/gzip');
    const folder = join(small.folder, 'archive');
    mkdirSync(folder);
    writeFileSync(join(folder, 'all.tar.gz'), Buffer.from(await archive.arrayBuffer()));
    execFileSync('tar', ['xzf', 'all.tar.gz'], { cwd: folder });
    expect(readFileSync(join(folder, 'dist/a.txt'), 'utf8')).toBe('hello');
    expect(execFileSync('find', ['dist', '-type', 'f', '-perm', '-100'], { cwd: folder }).toString().trim()).toBe(
      'dist/deep/tool',
    );
    expect(readFileSync(join(folder, 'dist/a b$(x).bin')).length).toBe(1_500_000);

    const fetched = join(small.folder, 'fetched');
    const listed = execFileSync(process.execPath, [CLI, 'artifacts', id, '--download', fetched], {
      env: { ...process.env, SERVICE_URL: server.url, SERVICE_API_KEY: server.apiKey },
    }).toString();
    expect(listed).toMatch(/^STAGE +BYTES {2}UNTIL +FILE\nbuild all\/one {2}1500000 {2}.*Z {2}dist\/a b\$\(x\)\.bin\n/);
    expect(readdirSync(fetched, { recursive: true }).map(String).toSorted()).toEqual(
      ['', '/dist', '/dist/a b$(x).bin', '/dist/a.txt', '/dist/deep', '/dist/deep/tool']
        .map((path) => `build%20all%2Fone${path}`)
        .toSorted(),
    );
    expect(readFileSync(join(fetched, 'build%20all%2Fone/dist/a.txt'), 'utf8')).toBe('hello');
  });

  it('what is not there, or not the caller’s, is 404; a ticket of the run opens it', async () => {
    const { id } = await small.run('pipeline: {name: asked}\nstages: {a: {run: printf x > f, artifacts: f}}\n');
    const path = `/pipeline/${id}/artifacts/a/f`;
    expect((await download(path)).status).toBe(200);
    for (const other of [
      `/pipeline/${id}/artifacts/a/g`,
      `/pipeline/${id}/artifacts/b/f`,
      `/pipeline/${id}/artifacts/a/..%2f..%2fapi-key`,
      `/pipeline/${id.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))}/artifacts/a/f`,
      '/pipeline/x/artifacts/a/f',
    ])
      expect([other, (await download(other)).status]).toEqual([other, 404]);
    const { data } = await server.graphql<{ createStreamTicket: string }>(
      'mutation ($id: String!) { createStreamTicket(runId: $id) }',
      { id },
    );
    const ticket = data.createStreamTicket;
    expect(await (await fetch(`${server.url}${path}?token=${ticket}`)).text()).toBe('x');
    const { id: another } = await small.run(
      'pipeline: {name: asked}\nstages: {a: {run: printf x > f, artifacts: f}}\n',
    );
    expect((await fetch(`${server.url}/pipeline/${another}/artifacts/a/f?token=${ticket}`)).status).toBe(401);
  });

  it('no token but such a ticket opens them from the address, where others would find it', async () => {
    const { id } = await small.run('pipeline: {name: asked}\nstages: {a: {run: printf x > f, artifacts: f}}\n');
    for (const path of ['a/f', 'a'])
      for (const token of [server.apiKey, 'nothing', '']) {
        const { status } = await fetch(`${server.url}/pipeline/${id}/artifacts/${path}?token=${token}`);
        expect([path, token, status]).toEqual([path, token, 401]);
      }
    expect((await download(`/pipeline/${id}/artifacts/a/f?token=${server.apiKey}`)).status).toBe(200);
  });

  it('nothing leaves the working folder by a link; the log says what was not taken', async () => {
    const { id, status } = await small.run(`pipeline: {name: links}
stages:
  a:
    run: |
      ln -s /etc/passwd passwd
      ln -s / root
      ln -s real inside
      printf fine > real
      mkfifo pipe
    artifacts: ['*', 'root/etc/*']
`);
    expect(status).toBe('SUCCESS');
    expect((await list(id)).map(({ key, sizeBytes }) => [key, sizeBytes])).toEqual([
      ['inside', '4'],
      ['real', '4'],
    ]);
    const lines = (await small.linesOf(id)).join('\n');
    expect(lines).toContain('"passwd" is not kept: it is a link that leaves the working folder');
    expect(lines).toContain('"pipe" is not kept: it is no file');
    expect(lines).toContain('kept 2 files');
  });

  it('nothing to keep is a line, and a failure where something is required; a failed stage keeps only where asked', async () => {
    const { id, status, stages } = await small.run(`pipeline: {name: nothing}
stages:
  line: {run: 'true', artifacts: dist/**}
  required: {run: 'true', artifacts: {paths: dist/**, required: true}}
  failed: {run: 'printf x > f; exit 3', artifacts: f}
  report: {run: 'printf x > f; exit 3', artifacts: {paths: f, when: failure}}
  always: {run: 'printf y > f', artifacts: {paths: f, when: always}}
`);
    expect(status).toBe('FAILED');
    expect(Object.fromEntries(stages.map(({ name, reason }) => [name, reason]))).toEqual({
      line: null,
      required: 'artifacts',
      failed: 'exit',
      report: 'exit',
      always: null,
    });
    expect((await list(id)).map(({ stage }) => stage).toSorted()).toEqual(['always', 'report']);
    expect((await small.linesOf(id)).join('\n')).toContain("no file matches 'artifacts' (dist/**): nothing is kept");
  });

  it('more than may be kept fails the stage with the reason quota, and is not to be seen', async () => {
    const { id, stages } = await small.run(`pipeline: {name: quota}
stages:
  fits: {run: 'head -c 2000000 /dev/zero > f', artifacts: f}
  over: {run: 'head -c 1500000 /dev/urandom > g', artifacts: g, after: fits, retry: 2}
`);
    expect(stages.map(({ status, reason }) => [status, reason])).toEqual([
      ['SUCCESS', null],
      ['FAILED', 'quota'],
    ]);
    expect((await list(id)).map(({ key }) => key)).toEqual(['f']);
    expect((await small.linesOf(id)).join('\n')).toContain('3.0 MB may be kept');
  });

  it('an attempt that is tried again leaves nothing to be seen', async () => {
    const { id, stages } = await small.run(`pipeline: {name: again}
stages:
  a:
    run: |
      printf x >> f
      [ -e once ] || { touch once; exit 1; }
    retry: {max: 1, delay: 1s}
    artifacts: {paths: f, when: always}
`);
    expect(stages.map(({ status }) => status)).toEqual(['SUCCESS']);
    const [kept, ...others] = await list(id);
    expect(others).toEqual([]);
    expect(await (await download((kept as Listed).value)).text()).toBe('xx');
  });

  it('a cancelled run keeps nothing', async () => {
    const id = await trigger(
      server,
      'pipeline: {name: c}\nstages: {a: {run: printf x > f; sleep 60, artifacts: {paths: f, when: always}}}\n',
    );
    await server.graphql('mutation ($id: String!) { cancelPipeline(id: $id) { cancelledStages } }', { id });
    await small.linesOf(id);
    expect(await list(id)).toEqual([]);
  });

  it('a stage with a folder of its own begins with what its dependencies have kept, or with what it asks for', async () => {
    const { id, status } = await small.run(`pipeline: {name: passed on}
stages:
  first:
    run: mkdir -p out bin; printf one > out/f; printf one > only-first; printf '#!/bin/sh\\necho ran' > bin/tool; chmod +x bin/tool
    artifacts: [out/**, only-first, bin/*]
  second:
    run: printf two > out/f; touch out/empty
    after: first
    artifacts: out/**
  direct:
    run: cat out/f; ls; [ ! -e only-first ]; [ -e out/empty ]
    after: second
    workspace: fresh
  all:
    run: cat out/f only-first; ./bin/tool; [ -O out/f ]
    after: second
    workspace: fresh
    artifacts: {from: [first, second]}
  none:
    run: '[ -z "$(ls)" ]'
    after: second
    workspace: fresh
    artifacts: {from: []}
`);
    const lines = await small.linesOf(id);
    expect([status, lines.join('\n')]).toEqual(['SUCCESS', expect.stringContaining('twooneran')]);
  });
});

const REPORT = `query ($id: String!, $status: String, $query: String, $first: Int, $after: String, $stage: String) {
  testReport(runId: $id) {
    total passed failed skipped durationSecs
    cases(status: $status, query: $query, first: $first, after: $after, stage: $stage) {
      stage suite className name status durationSecs message cursor
    }
  }
}`;

interface Report {
  readonly testReport: {
    readonly total: number;
    readonly cases: readonly { readonly stage: string; readonly name: string; readonly cursor: string }[];
  } | null;
}

describe('test reports', { timeout: 120_000 }, () => {
  it('they are counted and listed by status and name, page by page, also of a stage that failed', async () => {
    const { id, status } = await small.run(`pipeline: {name: tested}
stages:
  unit:
    run: |
      { echo '<testsuite name="unit">'; for i in $(seq 3000); do echo "<testcase classname='C' name='case $i' time='0.5'/>"; done
        echo '<testcase name="breaks"><failure message="no $SERVICE_MASK">trace</failure></testcase></testsuite>'; } > junit-a.xml
      echo '<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>' > junit-b.xml
      ln -s /etc/passwd junit-c.xml
      printf 'hidden-value\\n' >> "$SERVICE_MASK"
      echo '<testsuite><testcase name="hidden-value"><skipped/></testcase></testsuite>' > junit-d.xml
      exit 4
    reports: {junit: 'junit*.xml'}
  more:
    run: echo '<testsuite name="more"><testcase name="last"/></testsuite>' > more.xml
    reports: {junit: more.xml}
  without: {run: 'true'}
`);
    expect(status).toBe('FAILED');
    const report = async (asked: object = {}): Promise<NonNullable<Report['testReport']>> => {
      const { data, errors } = await server.graphql<Report>(REPORT, { id, ...asked });
      expect(errors).toBeUndefined();
      return data.testReport as NonNullable<Report['testReport']>;
    };
    const names = async (asked: object): Promise<string[]> => (await report(asked)).cases.map(({ name }) => name);
    expect(await report({ status: 'failed' })).toEqual({
      ...{ total: 3003, passed: 3001, failed: 1, skipped: 1, durationSecs: 1500 },
      cases: [
        {
          ...{ stage: 'unit', suite: 'unit', className: null, name: 'breaks', status: 'failed', durationSecs: 0 },
          ...{ message: 'no $SERVICE_MASK', cursor: expect.any(String) },
        },
      ],
    });
    expect(await names({ status: 'SKIPPED' })).toEqual(['***']);
    expect(await names({ query: 'CASE 299' })).toEqual(
      [299, ...Array.from({ length: 10 }, (_, digit) => 2990 + digit)].map((number) => `case ${number}`),
    );
    expect(await names({ stage: 'more' })).toEqual(['last']);
    const pages: string[] = [];
    for (let after: string | undefined; ;) {
      const { cases } = await report({ first: 1_000, after });
      pages.push(...cases.map(({ stage, name }) => `${stage}/${name}`));
      after = cases.at(-1)?.cursor;
      if (after === undefined) break;
    }
    expect(pages).toHaveLength(3003);
    expect(new Set(pages).size).toBe(3003);
    expect(pages.at(-1)).toBe('more/last');
    expect((await small.linesOf(id)).join('\n')).toMatch(
      /"junit-b.xml" is not in .* DTD[^]*tests: 3000 passed, 1 failed, 1 skipped/,
    );
    const stages = await server.graphql<{ run: { stages: unknown } }>(
      'query ($id: String!) { run(id: $id) { stages { name tests { total failed durationSecs } } } }',
      { id },
    );
    expect(stages.data.run.stages).toEqual([
      { name: 'unit', tests: { total: 3002, failed: 1, durationSecs: 1500 } },
      { name: 'more', tests: { total: 1, failed: 0, durationSecs: 0 } },
      { name: 'without', tests: null },
    ]);
  });

  it('nobody’s run has none, a run without them zeros; what is asked badly is said', async () => {
    const unknown = await server.graphql<Report>(REPORT, { id: '0192f0c1-2b3c-7abc-8def-0123456789ab' });
    expect(unknown.data.testReport).toBeNull();
    const { id } = await small.run("pipeline: {name: untested}\nstages: {a: {run: 'true'}}\n");
    const none = await server.graphql<Report>(REPORT, { id });
    expect(none.data.testReport).toMatchObject({ total: 0, cases: [] });
    for (const asked of [{ status: 'green' }, { first: 0 }, { after: 'x' }, { query: 'x'.repeat(300) }]) {
      const { errors } = await server.graphql<Report>(REPORT, { id, ...asked });
      expect(errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT');
    }
  });
});
