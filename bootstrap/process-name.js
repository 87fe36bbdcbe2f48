/** A process by a name that another one can ask the system about: its pid alone may have been given out again. */
import { readFileSync } from 'node:fs';

export const nameOf = (pid) => ({ pid, started: startTime(pid) });

/** Of a process of this host. */
export function hasEnded({ pid, started }) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error.code === 'ESRCH';
  }
  return started !== undefined && started !== startTime(pid);
}

/** In clock ticks since boot, where the system tells it. */
function startTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
