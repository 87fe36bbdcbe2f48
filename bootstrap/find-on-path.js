/** The first executable of that name on the PATH, or undefined; what the shell would start, without starting a shell. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export function findOnPath(name, env) {
  const path = env.PATH ?? env.Path ?? '';
  const names = process.platform === 'win32' ? [`${name}.exe`, `${name}.cmd`] : [name];
  for (const folder of path.split(delimiter).filter(Boolean)) {
    for (const candidate of names.map((each) => join(folder, each))) if (isExecutable(candidate)) return candidate;
  }
  return undefined;
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
