/**
 * Requests from one service to another (`svc.<service>.<verb>`), with refusals that keep their code on the way: what the
 * answering side throws as an `ServiceError` the asking side gets thrown.
 */
import {
  BrokerAway,
  NoResponders,
  RemoteError,
  RequestTimeout,
  subjects,
  type Bus,
  type BusSubscription,
} from '@penstock/bus';
import { withRequest } from '@penstock/telemetry/request';
import { type ErrorCode, ServiceError, serviceErrorOf, Unavailable } from '@penstock/errors';

export type CalledService = 'auth' | 'registry' | 'webhook-ingest';

/** What crosses in the place of a value or of what was thrown. */
export type CallAnswer<Rep> =
  | { readonly ok: true; readonly value: Rep }
  | {
      readonly ok: false;
      readonly code: ErrorCode;
      readonly message: string;
      readonly extensions: Readonly<Record<string, unknown>>;
    };

const CALL_MS_MAX = 10_000;
/** One try: a process that died with the question has peers. */
const TRY_MS_MAX = 5_000;

/** Throws the `ServiceError` that the service threw, or `Unavailable` where it does not answer. Asked again only while nobody got it. */
export async function callService<Req, Rep>(
  bus: Bus,
  service: CalledService,
  verb: string,
  body: Req,
  deadlineMs = CALL_MS_MAX,
  tryMs = TRY_MS_MAX,
): Promise<Rep> {
  return valueOf(
    await askService<Req, CallAnswer<Rep>>(bus, service, subjects.service(service, verb), body, deadlineMs, tryMs),
  );
}

/** As `callService`, for a question that has a subject of its own and says by its answer what came of it. Throws `Unavailable`. */
export async function askService<Req, Rep>(
  bus: Bus,
  service: CalledService,
  subject: string,
  body: Req,
  deadlineMs = CALL_MS_MAX,
  tryMs = TRY_MS_MAX,
): Promise<Rep> {
  try {
    return await bus.requestRetrying<Req, Rep>(subject, body, { deadlineMs, timeoutMs: Math.min(deadlineMs, tryMs) });
  } catch (error) {
    if (
      error instanceof RequestTimeout ||
      error instanceof NoResponders ||
      error instanceof BrokerAway ||
      error instanceof RemoteError
    ) {
      throw new Unavailable(`The service '${service}' does not answer.`, { cause: error });
    }
    throw error;
  }
}

/** @throws the `ServiceError` that it stands for */
export function valueOf<Rep>(answer: CallAnswer<Rep>): Rep {
  if (answer.ok) return answer.value;
  throw serviceErrorOf(answer.code, answer.message, answer.extensions);
}

/** Answers until stopped. A verb may hold wildcards: its handler is told the subject, and is called for the request that the asker serves. A handler's `ServiceError` reaches the asker; any other error is logged by the bus and answered as failed. */
export function answerCalls(
  bus: Bus,
  service: CalledService,
  handlers: Readonly<Record<string, (body: never, subject: string) => unknown>>,
): BusSubscription {
  const subscriptions = Object.entries(handlers).map(([verb, handle]) =>
    bus.respond<never, CallAnswer<unknown>>(
      subjects.service(service, verb),
      (body, { subject, request }) => withRequest(request, () => answerOf(() => handle(body, subject))),
      {
        queue: service,
      },
    ),
  );
  return {
    stop: () => {
      for (const subscription of subscriptions) subscription.stop();
    },
  };
}

/** Rejects with whatever is no `ServiceError`. */
export async function answerOf(handle: () => unknown): Promise<CallAnswer<unknown>> {
  try {
    return { ok: true, value: (await handle()) ?? null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { ok: false, code: error.code, message: error.message, extensions: error.extensions };
  }
}
