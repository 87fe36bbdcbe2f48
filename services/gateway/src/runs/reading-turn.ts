/**
 * Whose turn it is to have a pipeline file read (`libs/parse-pool`): a user's, and for the API key, which may stand for a whole
 * organisation, a pipeline's. A file that has not been read yet has no certain name; what looks like it is enough to take turns by.
 */
import { createHash } from 'node:crypto';
import { SERVICE_TENANT } from '@penstock/run';

/** The API key takes so many turns at most, whatever names it sends. */
const TURNS_MAX = 64;
const LOOKED_AT_CHARACTERS = 4_096;
const NAME = /\bname["']?\s*:\s*["']?([^\n"'#,{}]{1,200})/u;

export function readingTurn(tenant: string, yaml: string): string {
  if (tenant !== SERVICE_TENANT) return tenant;
  const name = NAME.exec(yaml.slice(0, LOOKED_AT_CHARACTERS))?.[1]?.trim() ?? '';
  return `${tenant}/${createHash('sha256').update(name).digest().readUInt32LE() % TURNS_MAX}`;
}
