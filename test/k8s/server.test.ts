/** `penstock serve` on a cluster, from a pipeline with images and services to a run that has ended. */
import { IMAGE, labForTests, type Lab } from '@penstock/executor-kubernetes/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

const found = await labForTests('a server whose stages are Pods');
/** Of what is run only where there is one. */
const lab = found as Lab;

const PIPELINE = `
pipeline: {name: pods}
stages:
  build:
    image: ${IMAGE}
    run: echo "version=7" >>$SERVICE_OUTPUT
    outputs: [version]
  test:
    after: build
    image: ${IMAGE}
    services:
      web:
        image: {name: ${IMAGE}, entrypoint: [sh, -c, 'mkdir /tmp/w; echo served >/tmp/w/i; exec httpd -f -p 8080 -h /tmp/w']}
        ready: wget -q -O /dev/null http://127.0.0.1:8080/i
    run: |
      wget -q -O - http://web:8080/i
      echo "version \${{ stages.build.outputs.version }}"
`;

describe.runIf(found !== null)('a server whose stages are Pods', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({
      env: {
        SERVICE_EXECUTORS: 'kubernetes',
        SERVICE_K8S_NAMESPACE: lab.namespace,
        SERVICE_K8S_KUBECONFIG: lab.kubeconfig,
      },
    });
  });
  afterAll(async () => {
    await server.stop();
    await lab.close();
  });

  it('keeps what a stage in a Pod leaves, gives it to those after it, and masks what is secret', async () => {
    const value = `k8s-canary-${'x'.repeat(20)}`;
    const set = await server.graphql(
      'mutation ($value: String!) { setSecret(name: "TOKEN", value: $value, pipeline: "pods-files") { name } }',
      { value },
    );
    expect(set.errors).toBeUndefined();
    const yaml = `
pipeline: {name: pods-files}
inputs: {color: {type: string, default: green}}
stages:
  build:
    image: ${IMAGE}
    secrets: {TOKEN: TOKEN, FILE: {secret: TOKEN, file: true}}
    run: |
      mkdir -p dist/deep; printf hello >dist/deep/a; head -c 3000000 /dev/zero >dist/large; chmod 755 dist/deep/a
      ln -s deep/a dist/link; ln -s /etc/passwd dist/out; ln dist/deep/a dist/hard; echo no >other
      echo "variable $TOKEN file $(cat $FILE) color $INPUT_COLOR"; stat -f -c %T "$FILE"
      echo later-made-value >>$SERVICE_MASK; echo "own later-made-value"
    artifacts: [dist/**]
  test:
    after: build
    image: ${IMAGE}
    run: find . -type f | sort; cat dist/deep/a dist/link; wc -c <dist/large; test -x dist/deep/a && ! test -e other && echo as kept
  lost:
    image: ${IMAGE}
    allow_failure: true
    artifacts: {paths: [nothing/**], required: true}
    run: echo none
`;
    const { data } = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
      yaml,
      waitSeconds: 120,
    });
    const { id, status } = data.triggerPipeline.run;
    const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
    const linesOf = (of: string, stream: string): unknown[] =>
      events
        .filter(({ event, data: { stage, stream: on } }) => event === 'stage_log' && stage === of && on === stream)
        .map(({ data: { line } }) => line);
    expect(JSON.stringify(events)).not.toContain(value);
    expect(linesOf('build', 'stdout')).toEqual(['variable *** file *** color green', 'tmpfs', 'own ***']);
    expect(linesOf('build', 'system')).toEqual([
      '"dist/out" is not kept: it is a link that leaves the working folder',
      'kept 4 files (3000005 bytes)',
    ]);
    expect(linesOf('test', 'stdout')).toEqual([
      ...['./dist/deep/a', './dist/hard', './dist/large', './dist/link'],
      ...['hellohello3000000', 'as kept'],
    ]);
    expect(linesOf('lost', 'system')).toEqual([expect.stringContaining('nothing is kept')]);
    expect(status).toBe('SUCCESS');
    await expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
  }, 180_000);

  it('lays out in a Pod what an earlier one has left in a cache, of its folder and of its home', async () => {
    const run = async (key: string): Promise<Record<'stdout' | 'system', unknown[]>> => {
      const yaml = `
pipeline: {name: pods-caches}
stages:
  build:
    image: ${IMAGE}
    cache: {key: '${key}', restore: [tools-], paths: [tools, '!tools/scratch', ~/.store]}
    run: |
      if [ -e tools/run ]; then cat tools/run ~/.store/deep/item; readlink tools/link; stat -c '%a %Y' tools/run; ls tools; fi
      mkdir -p tools/scratch ~/.store/deep; echo scratch >tools/scratch/x; echo item of ${key} >~/.store/deep/item
      [ -e tools/run ] || { echo made; echo ${key} >tools/run; chmod 575 tools/run; touch -d @1000000000 tools/run; ln -s run tools/link; }
`;
      const { data } = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
        yaml,
        waitSeconds: 120,
      });
      const { id, status } = data.triggerPipeline.run;
      expect(status).toBe('SUCCESS');
      const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
      const linesOf = (on: string): unknown[] =>
        events
          .filter(({ event, data: { stream } }) => event === 'stage_log' && stream === on)
          .map(({ data: { line } }) => line);
      return { stdout: linesOf('stdout'), system: linesOf('system') };
    };
    const first = await run('tools-1');
    expect(first.stdout).toEqual(['made']);
    expect(first.system).toEqual([
      "no cache 'tools-1' is there yet",
      expect.stringMatching(/^saved the cache 'tools-1': 3 files/),
    ]);
    const listed = async (): Promise<string[]> => {
      const { data } = await server.graphql<{ caches: { key: string }[] }>('{ caches { key } }');
      return data.caches.map(({ key }) => key);
    };
    // Entries follow the commit of the success.
    await expect.poll(listed, { timeout: 30_000 }).toEqual(['tools-1']);
    const found = ['tools-1', 'item of tools-1', 'run', '575 1000000000', 'link', 'run'];
    const second = await run('tools-1');
    expect(second.stdout).toEqual(found);
    expect(second.system).toEqual([expect.stringMatching(/^restored the cache 'tools-1': 3 files/)]);
    const third = await run('tools-2');
    expect(third.stdout).toEqual(found);
    expect(third.system).toEqual([
      expect.stringMatching(/^restored the cache 'tools-1': 3 files/),
      expect.stringMatching(/^saved the cache 'tools-2': 3 files/),
    ]);
    await expect.poll(listed, { timeout: 30_000 }).toHaveLength(2);
    expect((await run('tools-2')).stdout).toEqual(['tools-1', 'item of tools-2', ...found.slice(2)]);
  }, 180_000);

  it('says in the log of a stage in a Pod what it asks for and cannot keep, in the words that are used elsewhere', async () => {
    const made = (folder: string): string => `
      mkdir -p ${folder}/shut; mkfifo ${folder}/pipe; ln -s pipe ${folder}/link; echo 1 >${folder}/kept
      echo 1 >"$(printf "${folder}/li\\nne")"; echo 1 >${folder}/shut/file; chmod 0 ${folder}/shut`;
    const yaml = `
pipeline: {name: pods-left-out}
stages:
  build:
    image: ${IMAGE}
    artifacts: [dist/**]
    cache: {key: odd, paths: [tools, ~/.store]}
    run: |${made('dist')}${made('tools')}${made('$HOME/.store')}
`;
    const { data } = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
      yaml,
      waitSeconds: 120,
    });
    const { id, status } = data.triggerPipeline.run;
    const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
    const lines = events
      .filter(({ event, data: { stream } }) => event === 'stage_log' && stream === 'system')
      .map(({ data: { line } }) => line);
    const leftOut = (folder: string): string[] => [
      `"${folder}/li\\nne" is not kept: it has control characters, or a backslash`,
      `"${folder}/pipe" is not kept: it is no file`,
      `"${folder}/shut" is not kept: the folder cannot be read`,
    ];
    expect(lines).toEqual([
      "no cache 'odd' is there yet",
      ...leftOut('dist'),
      '"dist/link" is not kept: it is a link to no file',
      'kept 1 file (2 bytes)',
      ...leftOut('tools'),
      ...leftOut('.store'),
      expect.stringMatching(/^saved the cache 'odd': 4 files/),
    ]);
    expect(status).toBe('SUCCESS');
    await expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
  }, 180_000);

  it('runs a pipeline with an image, outputs and a service to its end, and leaves no Pod', async () => {
    const { data } = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
      yaml: PIPELINE,
      waitSeconds: 60,
    });
    const { id, status } = data.triggerPipeline.run;
    expect(status).toBe('SUCCESS');
    const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
    const lines = events
      .filter(({ event, data: { stage, stream } }) => event === 'stage_log' && stage === 'test' && stream === 'stdout')
      .map(({ data: { line } }) => line);
    expect(lines).toEqual(['served', 'version 7']);
    await expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
  });
});
