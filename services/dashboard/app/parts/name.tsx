/** A text of somebody else's making: it keeps its direction to itself, and shows what would not be seen. */
import type { JSX } from 'preact';
import { visible } from './unseen.ts';

export function Name({ text }: { readonly text: string }): JSX.Element {
  return <bdi>{visible(text)}</bdi>;
}
