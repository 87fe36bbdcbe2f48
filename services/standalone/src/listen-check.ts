/** Whether the address of the API can be listened on, asked before anything is started for it. */
import { once } from 'node:events';
import { createServer } from 'node:net';

export class CannotListen extends Error {
  override readonly name = 'CannotListen';
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program is using it',
  EACCES: 'this user may not listen there (ports below 1024 are for root)',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no such name',
};

/** An error of listening in a person's words; any other error is returned as it is. */
export function listenProblem(
  cause: unknown,
  { host, port }: { readonly host: string; readonly port: number },
): unknown {
  if (!(cause instanceof Error)) return cause;
  // An error that comes from another thread has lost its code.
  const code =
    (cause as NodeJS.ErrnoException).code ?? /^(?:listen|getaddrinfo) (E[A-Z]+)/.exec(cause.message)?.[1] ?? '';
  const reason = Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  if (reason === undefined) return cause;
  return new CannotListen(`cannot listen on ${host}:${port}: ${reason}; name another address with --listen HOST:PORT`, {
    cause,
  });
}

/** Throws CannotListen, with the cause and the remedy. Port 0 asks nothing. */
export async function checkListenAddress({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<void> {
  const probe = createServer();
  try {
    probe.listen({ host, port, exclusive: true });
    await once(probe, 'listening');
  } catch (cause) {
    throw listenProblem(cause, { host, port });
  }
  probe.close();
  await once(probe, 'close');
}
