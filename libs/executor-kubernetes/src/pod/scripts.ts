/** The shell scripts that run in a Pod, as text. */
import { readFileSync } from 'node:fs';

export const guardScript = readFileSync(new URL('./guard.sh', import.meta.url), 'utf8');
export const lineScript = readFileSync(new URL('./line.sh', import.meta.url), 'utf8');
export const starterScript = readFileSync(new URL('./starter.sh', import.meta.url), 'utf8');
