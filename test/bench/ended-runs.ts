/** Three-stage runs by the public API, each to its end. */
import { TRIGGER } from '../support/server.ts';

export const PIPELINES = 40;

export interface Api {
  readonly url: string;
  readonly apiKey: string;
}

/** Of many pipelines by turns, so many in flight. Throws where one does not succeed. */
export async function endRuns({ url, apiKey }: Api, count: number, inFlight: number): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < count) {
      const index = (next += 1);
      const yaml = [
        `pipeline: {name: bench-${index % PIPELINES}}`,
        'stages:',
        '  a: {run: echo a}',
        '  b: {run: echo b, after: a}',
        '  c: {run: echo c, after: b}',
      ].join('\n');
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ query: TRIGGER, variables: { yaml, waitSeconds: 30 } }),
        signal: AbortSignal.timeout(60_000),
      });
      const answer = (await response.json()) as { data?: { triggerPipeline?: { run: { status: string } } } };
      const status = answer.data?.triggerPipeline?.run.status;
      if (status !== 'SUCCESS') throw new Error(`a run was ${status ?? JSON.stringify(answer)}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
}
