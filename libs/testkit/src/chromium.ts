/** The browser of this machine; where there is none, what is not run is told at the end of `npm test`. */
import { accessSync, appendFileSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** `what` is not run where there is no browser. */
export function chromiumFor(what: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const path = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
  const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
  if (path === undefined && notRunFile)
    appendFileSync(notRunFile, `${what}: no chromium on the PATH of this machine\n`);
  return path;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
