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
