/** What can be the name of an image, as registries and their tools understand one. */
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';

const HOST = String.raw`[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::[0-9]{1,5})?`;
const COMPONENT = String.raw`[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*`;
const TAG = String.raw`[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`;
const DIGEST = String.raw`[a-z0-9]+:[0-9a-f]{32,128}`;
const NAME = new RegExp(`^(?:${HOST}/)?${COMPONENT}(?:/${COMPONENT})*(?::${TAG})?(?:@${DIGEST})?$`, 'u');

/**
 * Why a text cannot be the name of an image. Such a name becomes an argument of a program: one that begins with '-' would be
 * an option there.
 */
export function imageFault(name: string): { readonly message: string; readonly suggestion?: string } | undefined {
  if (name.length <= PIPELINE_LIMITS.imageLengthMax && NAME.test(name)) return undefined;
  const lower = name.toLowerCase();
  return {
    message: `${quoted(name)} cannot be the name of an image`,
    ...(lower !== name && NAME.test(lower)
      ? { suggestion: `image names are lower-case: '${lower}'` }
      : { suggestion: 'such as node:26 or registry.example/team/app:1.2' }),
  };
}
