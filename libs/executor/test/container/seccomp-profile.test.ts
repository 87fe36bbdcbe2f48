/** Of the engine's own profile nothing is allowed that a sandbox refuses, and all else as it was. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { withoutRefused, writeSeccompProfile } from '../../src/container/seccomp-profile.ts';

const PROFILE = {
  defaultAction: 'SCMP_ACT_ERRNO',
  defaultErrnoRet: 38,
  syscalls: [
    { names: ['read', 'ptrace', 'clone', 'clone3', 'unshare', 'keyctl'], action: 'SCMP_ACT_ALLOW', args: [] },
    { names: ['bpf', 'setns'], action: 'SCMP_ACT_ALLOW', includes: { caps: ['CAP_SYS_ADMIN'] } },
    { names: ['personality'], action: 'SCMP_ACT_ALLOW', args: [{ index: 0, value: 8, op: 'SCMP_CMP_EQ' }] },
  ],
};

it('refuses in one rule what stood in several, and namespaces by their flags', () => {
  const { syscalls, ...rest } = withoutRefused(PROFILE);
  expect(rest).toEqual({ defaultAction: 'SCMP_ACT_ERRNO', defaultErrnoRet: 38 });
  expect(syscalls.slice(0, 2)).toEqual([{ ...PROFILE.syscalls[0], names: ['read'] }, PROFILE.syscalls[2]]);
  const rulesOf = (name: string) => syscalls.filter(({ names }) => names?.includes(name) === true);
  for (const name of ['ptrace', 'keyctl', 'bpf', 'setns', 'io_uring_setup', 'pidfd_getfd', 'mount'])
    expect(rulesOf(name)).toEqual([expect.objectContaining({ action: 'SCMP_ACT_ERRNO', errnoRet: 1 })]);
  expect(rulesOf('clone3')).toEqual([expect.objectContaining({ errnoRet: 38 })]);
  expect(rulesOf('clone')).toEqual([
    expect.objectContaining({ args: [{ index: 0, value: 0x7e020000, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }] }),
  ]);
});

it('is made of the first profile that can be read; without any the engine keeps to its own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-profile-'));
  try {
    const [bad, good, made] = ['bad', 'good', 'made'].map((name) => join(folder, name)) as [string, string, string];
    writeFileSync(bad, '{');
    expect(writeSeccompProfile(made, [join(folder, 'none'), bad])).toBeUndefined();
    writeFileSync(good, JSON.stringify(PROFILE));
    expect(writeSeccompProfile(made, [bad, good])).toBe(made);
    expect(JSON.parse(readFileSync(made, 'utf8'))).toEqual(withoutRefused(PROFILE));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
