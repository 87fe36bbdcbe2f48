/** What Prometheus answers to a query that has one figure. */

const REQUEST_MS_MAX = 10_000;
/** One figure is some hundred bytes. */
const ANSWER_CHARACTERS_MAX = 64 * 1024;

class NoFigure extends Error {
  override readonly name = 'NoFigure';
}

interface PrometheusAnswer {
  readonly status?: string;
  readonly error?: string;
  readonly data?: { readonly resultType?: string; readonly result?: unknown };
}

/** Throws NoFigure, with the reason as its message, where there is none: no answer, nothing scraped, several series. */
export async function figureOf(prometheus: string, query: string): Promise<number> {
  const text = await answerTo(prometheus, query).catch((error: unknown) => {
    throw new NoFigure(`Prometheus does not answer: ${reasonOf(error)}`, { cause: error });
  });
  let answer: PrometheusAnswer;
  try {
    answer = JSON.parse(text) as PrometheusAnswer;
  } catch (cause) {
    throw new NoFigure('what answers at the address is no Prometheus: its answer is no JSON', { cause });
  }
  if (answer.status !== 'success')
    throw new NoFigure(`Prometheus refuses the query: ${answer.error ?? 'it says nothing'}`);
  const { resultType, result } = answer.data ?? {};
  const samples = resultType === 'scalar' ? [result] : Array.isArray(result) ? result.map(valueOf) : [];
  const [sample] = samples;
  if (samples.length === 0) throw new NoFigure('the query has no figure: Prometheus scrapes no scheduler');
  if (samples.length > 1) throw new NoFigure(`the query has ${samples.length} figures, and is to have one`);
  const figure = Array.isArray(sample) ? Number(sample[1]) : Number.NaN;
  if (!Number.isFinite(figure)) throw new NoFigure('the figure of the query is no number');
  return figure;
}

async function answerTo(prometheus: string, query: string): Promise<string> {
  const response = await fetch(`${prometheus}/api/v1/query`, {
    method: 'POST',
    body: new URLSearchParams({ query }),
    redirect: 'error',
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  });
  let text = '';
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    if (text.length > ANSWER_CHARACTERS_MAX) throw new Error('its answer is too long');
  }
  if (response.status === 401 || response.status === 403) throw new Error(`status ${response.status}`);
  return text;
}

function valueOf(series: unknown): unknown {
  return (series as { readonly value?: unknown }).value;
}

/** `fetch` says what went wrong in its cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as { readonly message?: string; readonly cause?: unknown };
  return cause instanceof Error && cause.message !== '' ? cause.message : (message ?? String(error));
}
