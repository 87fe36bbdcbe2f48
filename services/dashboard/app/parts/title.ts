/** The title of the page, which a browser shows beside those of others and in its history. */
import { visible } from './unseen.ts';

/** `what` may be somebody else's text. */
export function setTitle(what: string): void {
  document.title = `${visible(what)} · Penstock`;
}
