/** What both threads count, as one answer to Prometheus. */
import { within } from '@penstock/async';
import { Unavailable } from '@penstock/errors';
import { metricsText, type MetricsSnapshot, type MetricsText } from '@penstock/telemetry/metrics';

/** Prometheus gives up after 10 s, unless it is told otherwise, and then nobody knows why. */
const ENGINE_ANSWERS_MS = 5_000;

/** `accept`: the form that is asked for. Throws Unavailable where the engine does not answer: half of the figures would be wrong ones. */
export async function allFigures(
  engine: () => Promise<MetricsSnapshot>,
  own: () => Promise<MetricsSnapshot>,
  accept: string | undefined,
  waitMs = ENGINE_ANSWERS_MS,
): Promise<MetricsText> {
  const late = (): never => {
    throw new Unavailable(
      `The engine has not said what it counts within ${waitMs / 1_000} s: its thread is busy or stands still; the server's log may say with what.`,
    );
  };
  return await metricsText(await Promise.all([within(waitMs, engine(), late), own()]), accept);
}
