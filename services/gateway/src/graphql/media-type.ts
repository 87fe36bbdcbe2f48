/** In which of the two forms of GraphQL over HTTP an answer goes out: the older JSON, or the media type of its own. */

const JSON_ANSWER = 'application/json';
export const GRAPHQL_ANSWER = 'application/graphql-response+json';
export type AnswerType = typeof JSON_ANSWER | typeof GRAPHQL_ANSWER;

/** The newer form is for clients that name it, and not after the older one. A client that accepts neither is answered in the older one all the same. */
export function answerTypeOf(accept: string | undefined): AnswerType {
  if (accept === undefined || !accept.toLowerCase().includes(GRAPHQL_ANSWER)) return JSON_ANSWER;
  let best: AnswerType = JSON_ANSWER;
  let bestQuality = 0;
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    if (type !== JSON_ANSWER && type !== GRAPHQL_ANSWER) continue;
    const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}
