/** Where a stage may work: within its working folder, whatever the values are that its `workdir` is made of. */
import { quoted } from '../text/printable.ts';

/**
 * Why a path cannot be the folder of a stage; undefined where it can. It is asked of the file, and again when the values of
 * the expressions are known. Links that a stage has made are not followed here.
 */
export function workdirFault(path: string): string | undefined {
  if (/\p{Cc}/u.test(path)) return 'its workdir holds a line break or another control character';
  return path.startsWith('/') || path.split('/').includes('..')
    ? `its workdir ${quoted(path)} is outside of the workspace`
    : undefined;
}
