/**
 * The files that a stage in a Pod leaves for its owner: those of its outputs and of the stages that it adds. They come in one piece, a NUL
 * between them, which no good one of either holds.
 */
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import type { StageSpec } from '@penstock/executor';
import { outputFileOf, stagesFileOf } from './pod-manifest.ts';

/** The owner reads them where the stage would have written them. Nothing is followed: the paths are the owner's own. */
export function keepGivenFiles(spec: Pick<StageSpec, 'env' | 'folders'>, bytes: Buffer): void {
  const stagesFile = stagesFileOf(spec);
  const end = stagesFile === undefined ? -1 : bytes.indexOf(0);
  keep(outputFileOf(spec), end === -1 ? bytes : bytes.subarray(0, end));
  if (end !== -1) keep(stagesFile, bytes.subarray(end + 1));
}

function keep(path: string | undefined, bytes: Buffer): void {
  if (path === undefined || bytes.length === 0) return;
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600);
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}
