/** Changes to a stream that a test makes past all services. */
import { connect } from '@nats-io/transport-node';

const ANSWER_MS_MAX = 4_000;

/** How many bytes the stream may have; the answer is what it was. Rejects where no leader of it answers. */
export async function limitStream(servers: string, stream: string, bytes: number): Promise<number> {
  const connection = await connect({ servers: servers.split(','), noAsyncTraces: true });
  try {
    const ask = async <T>(subject: string, request: unknown): Promise<T> => {
      const answer = await connection.request(subject, JSON.stringify(request), { timeout: ANSWER_MS_MAX });
      const body = answer.json<T & { readonly error?: { readonly description: string } }>();
      if (body.error !== undefined) throw new Error(`${subject}: ${body.error.description}`);
      return body;
    };
    const { config } = await ask<{ readonly config: { readonly max_bytes: number } }>(
      `$JS.API.STREAM.INFO.${stream}`,
      {},
    );
    await ask(`$JS.API.STREAM.UPDATE.${stream}`, { ...config, max_bytes: bytes });
    return config.max_bytes;
  } finally {
    await connection.close();
  }
}
