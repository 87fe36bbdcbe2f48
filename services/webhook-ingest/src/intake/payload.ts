/** A body as its provider reads it, on whichever thread. Pure. */
import { BadUserInput } from '@penstock/errors';
import { fieldsOf, type Provider, type ProviderName, type Reading } from '../providers/provider.ts';

/** What goes to the thread. */
export interface PayloadTask {
  readonly provider: ProviderName;
  readonly event: string;
  readonly body: Uint8Array;
}

/** What comes back: an error would lose its class on the way. */
export type PayloadAnswer =
  | { readonly ok: true; readonly reading: Reading }
  | { readonly ok: false; readonly message: string };

/** Throws `BadUserInput` for what is no JSON object, or lacks what a push has. */
export function readPayload(provider: Provider, event: string, body: Uint8Array): Reading {
  let payload: unknown;
  try {
    payload = JSON.parse(UTF8.decode(body));
  } catch {
    throw new BadUserInput(
      'The body is not well-formed JSON. Set the content type of the webhook to application/json.',
    );
  }
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw new BadUserInput('The body is not a JSON object.');
  return provider.read(event, fieldsOf(payload));
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
