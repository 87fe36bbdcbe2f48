import { readFileSync } from 'node:fs';

/** Of the process so far (`VmHWM`) or now (`VmRSS`), in MB. */
export function memoryOf(pid: number, field: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kibibytes = '0'] = new RegExp(`^${field}:\\s+(\\d+) kB`, 'mu').exec(status) ?? [];
  return (Number(kibibytes) * 1024) / 1e6;
}
