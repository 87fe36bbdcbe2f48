/**
 * The bytes of a file that a message between the two threads gives away: nobody needs them any more where they come from, and copies
 * of them would fill the memory of both.
 */

/** Of a question: a part of an upload. */
export function givenInQuestion(message: unknown): ArrayBuffer[] {
  const { a: [, verb, body] = [] } = message as { readonly a?: readonly unknown[] };
  return typeof verb === 'string' && verb.startsWith('upload.') ? givenBy(body) : [];
}

/** Of an answer: a part of what is kept. */
export function givenInAnswer(message: unknown): ArrayBuffer[] {
  const { r: answer } = message as { readonly r?: { readonly value?: unknown } | null };
  return givenBy(answer?.value);
}

function givenBy(holder: unknown): ArrayBuffer[] {
  const { data } = (holder ?? {}) as { readonly data?: unknown };
  return data instanceof Uint8Array && data.buffer instanceof ArrayBuffer && data.length === data.buffer.byteLength
    ? [data.buffer]
    : [];
}
